"""What a captured graph takes for granted of a module, and whether it still holds.

A graph reads weights where they were when it was captured, and has everything that Python decided in it. So a module is looked
at before every replay: all attributes of all its parts, where its tensors lie and which of them learn, and its hooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from operator import attrgetter, is_, itemgetter
from typing import Any

import torch
import torch.nn.utils.parametrize as parametrize
from torch import Tensor, nn
from torch.autograd import forward_ad
from torch.nn.modules import module as of_torch
from torch.utils._device import DeviceContext

from enfa.nn.cuda.boxes import SIMPLE, Boxes, alike
from enfa.nn.triton import matmul_precision

__all__ = ["Watch", "ambient", "hooked_part", "leaves_of", "watched_elsewhere"]

_HELD = ("_parameters", "_buffers", "_modules")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL = ("_global_forward_hooks", "_global_forward_pre_hooks", "_global_backward_hooks", "_global_backward_pre_hooks")
_TORCH = vars(nn.Module()).keys() - {"training"}
_learns = attrgetter("requires_grad")
_dtype, _version = attrgetter("dtype"), attrgetter("_version")


class Watch:
    """A module as it was when this was made. Compared before every replay, so loops are few, and most of them C's."""

    def __init__(self, model: nn.Module) -> None:
        self.model, self.modules = model, list(model.modules())
        own = [m.__dict__ for m in self.modules]
        held = [m.__dict__[name] for m in self.modules for name in _HELD]
        self._dicts = [d for d in own + held if d]
        self._empty = [d for d in held if not d]
        self._lengths = [len(d) for d in self._dicts]
        names = [[name for name in d if name not in _TORCH] for d in own]
        # of one name it would give no tuple
        self._own = [(itemgetter(*of, "_is_full_backward_hook"), d) for of, d in zip(names, own)]
        self._held = [d for d in held if d]
        self._values = self._now()
        self._names = [
            f"{type(m).__name__}.{name}" for m, of in zip(self.modules, names) for name in (*of, "_is_full_backward_hook")
        ]
        self.tensors = [t for m in self.modules for t in (*m._parameters.values(), *m._buffers.values()) if t is not None]
        self._kinds = list(map(type, self.modules))
        self.boxes = Boxes(self._values, self._kinds)
        self.values = self._values + self.boxes.values
        self.holders = own + held  # whose contents a rehearsal must leave as they were
        there = {id(t) for t in self.tensors}
        self.loose = list({id(v): v for v in self.values if isinstance(v, Tensor) and id(v) not in there}.values())
        self._every = self.tensors + self.loose
        # which a device reads when a graph is captured, and not when it is replayed
        self._fixed = [t for t in self._every if t.device.type == "cpu"] if any(not t.is_cpu for t in self.tensors) else []
        self._about = self._tensors_now()
        self._hooks = [m.__dict__[name] for m in self.modules for name in _HOOKS if name in m.__dict__]
        self._hooks += [vars(of_torch)[name] for name in _GLOBAL if name in vars(of_torch)]

    def _now(self) -> list[Any]:
        """Every attribute of every part, then parameters, buffers and parts; without what torch keeps in all modules."""
        found: list[Any] = []
        for pick, d in self._own:
            found += pick(d)
        found.extend(chain.from_iterable(map(dict.values, self._held)))
        return found

    def same(self) -> bool:
        """Whether nothing has changed."""
        if any(self._empty) or list(map(len, self._dicts)) != self._lengths:
            return False
        try:
            now = self._now()
        except KeyError:  # one attribute has gone, and another come
            return False
        if not all(map(is_, now, self._values)) and not self._equal(now):
            return False
        return self._tensors_now() == self._about and list(map(type, self.modules)) == self._kinds and self.boxes.same()

    def _tensors_now(self) -> list[Any]:
        every = self._every
        return [
            *map(Tensor.data_ptr, every), *map(_learns, every), *map(Tensor.stride, every), *map(_dtype, every),
            *map(_version, self._fixed),
        ]  # fmt: skip

    def _equal(self, now: list[Any]) -> bool:
        """Whether values that were put in the place of others are the same numbers or words."""
        same = alike(now, self._values)
        if same:
            self._values = now
        return same

    def hooked(self) -> bool:
        return any(self._hooks)

    def changed(self) -> str:
        """Something that is not as it was, in words."""
        for module, (pick, d), length in zip(self.modules, self._own, self._lengths):
            try:
                pick(d)
            except KeyError as error:
                return f"{type(module).__name__}.{error.args[0]}"
            if len(d) != length:
                return f"{type(module).__name__}.{list(d)[-1]}"
        for name, before, now in zip(self._names, self._values, self._now()):
            if now is not before and not (type(now) in SIMPLE and now == before):
                return name
        if not self.boxes.same():
            return "what it, its class or its attributes hold"
        return "its parameters or buffers"


def hooked_part(model: nn.Module) -> str:
    """A part of a module that has a hook, or a ``forward`` of its own, in words."""
    for name, module in model.named_modules():
        if any(module.__dict__.get(hooks) for hooks in _HOOKS):
            return f"{type(module).__name__}{f' ({name})' if name else ''}"
    return "all modules"


def leaves_of(outs: list[Tensor]) -> Iterator[Tensor]:
    """The tensors without a history of their own that some tensors were computed from, and that learn."""
    seen: set[Any] = set()
    ahead = [t.grad_fn for t in outs if t.grad_fn is not None]
    yield from (t for t in outs if t.grad_fn is None and t.requires_grad)
    while ahead:
        node: Any = ahead.pop()
        if node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        ahead.extend(following for following, _ in node.next_functions if following is not None)


def ambient(device: torch.device) -> tuple[Any, ...]:
    """What a call depends on beside the module."""
    mixed = torch.is_autocast_enabled(device.type)
    return (
        torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_autocast_dtype(device.type) if mixed else None,
        matmul_precision(), torch.are_deterministic_algorithms_enabled(), torch.get_default_dtype(),
    )  # fmt: skip


def watched_elsewhere() -> bool:
    """Whether something looks at operations one by one, or is to: then a graph would hide them."""
    return (
        torch._C._len_torch_dispatch_stack() > 0
        or _function_modes()
        or forward_ad._current_level >= 0
        or parametrize._cache_enabled > 0
        or torch.is_anomaly_enabled()
        or torch.compiler.is_compiling()
        or torch._C._functorch.peek_interpreter_stack() is not None
        # in an autograd.Function, such as a checkpoint of the old kind: there Rows refuse to be computed
        or (not torch._C._is_fwd_grad_enabled() and not torch.is_inference_mode_enabled())
    )


def _function_modes() -> bool:
    count = torch._C._len_torch_function_stack()
    return count > 0 and any(not isinstance(torch._C._get_function_stack_at(n), DeviceContext) for n in range(count))
