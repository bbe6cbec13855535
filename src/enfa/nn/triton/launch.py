"""Launching our kernels: what Triton's dispatcher finds out for every launch is kept from one to the next.

The dispatcher binds arguments, works out what the kernel is to be specialised to and looks that up, in Python: some 40 µs, and
a training step has a hundred launches that differ in nothing but addresses. Here a launch is looked up by what
specialisation depends on (types, whether addresses and numbers are multiples of 16, whether numbers are 1, and all constants),
and then goes to the compiled kernel itself. Where that cannot be done (in Triton's interpreter, under a profiler's hooks, with
a Triton whose compiled kernels are called otherwise) the dispatcher does it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton

from enfa.cache import triton_in_folder

__all__ = ["Kernel", "cdiv", "kernel", "next_power_of_2"]

try:  # until Triton 3.4 they belong to the class of compiled kernels
    from triton.knobs import runtime as _hooks
except ImportError:
    from triton.compiler import CompiledKernel as _hooks


def cdiv(x: int, y: int) -> int:
    """x / y, rounded up. Triton's own costs microseconds: it may be called in a kernel, too."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0


def _watched() -> bool:
    """Whether something wants to see every launch: a chain of hooks, or one."""
    enter, leave = _hooks.launch_enter_hook, _hooks.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


def _kinds(args: tuple[Any, ...]) -> list[Any]:
    """What a kernel is specialised to, of arguments that are no constants; never less than Triton distinguishes."""
    found: list[Any] = []
    places = 0
    for arg in args:
        kind = type(arg)
        if kind is int:
            found.append((arg == 1) + 2 * (arg % 16 == 0) + 4 * (-(2**31) <= arg < 2**31))
        elif kind in _NUMBERS:
            found.append(kind)
        else:
            found.append(arg.dtype)
            places |= arg.data_ptr()
    if places % 16:  # one of them at least does not begin at a multiple of 16
        found += [kind not in _NUMBERS and arg.data_ptr() % 16 == 0 for arg, kind in zip(args, map(type, args))]
    return found


_NUMBERS = (int, float, bool, type(None))


class Kernel:
    """A kernel that is launched as Triton's are: ``kernel[grid](tensors and numbers, CONSTANT=...)``, constants by name."""

    def __init__(self, function: Callable, **options: Any) -> None:
        self.jit: Any = triton.jit(function, **options) if options else triton.jit(function)
        parameters = inspect.signature(function).parameters.values()
        self.constants = {p.name: p.default for p in parameters if "constexpr" in str(p.annotation)}
        self.direct = isinstance(self.jit, triton.runtime.JITFunction)
        self._known: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        assert [p.name for p in parameters][-len(self.constants) :] == list(self.constants), "constants come last"

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(self._launch, grid)

    def _launch(self, grid: tuple[int, ...], *args: Any, **given: Any) -> None:
        if not self.direct or _watched() or self.jit.pre_run_hooks:
            self._dispatched(grid, args, given)
            return
        device = torch._C._cuda_getDevice()
        key = (device, *_kinds(args), *given, *given.values())
        known = self._known.get(key)
        if known is None:
            self._known_as(key, self._dispatched(grid, args, given), given)
            return
        run, function, metadata, constants = known
        x, y, z = (*grid, 1, 1)[:3]
        run(x, y, z, torch._C._cuda_getCurrentRawStream(device), function, metadata, None, None, None, *args, *constants)

    def _dispatched(self, grid: tuple[int, ...], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        with triton_in_folder():
            return self.jit[grid](*args, **given)

    def _known_as(self, key: tuple[Any, ...], compiled: Any, given: dict[str, Any]) -> None:
        """A kernel that the dispatcher has compiled, found or loaded, and launched."""
        try:
            found = compiled.run, compiled.function, compiled.packed_metadata
        except AttributeError:
            self.direct = False
            return
        self._known[key] = (*found, tuple(given.get(name, default) for name, default in self.constants.items()))


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """``triton.jit`` of a kernel that is launched; what kernels call is ``triton.jit``'s as ever."""
    return partial(Kernel, **options) if function is None else Kernel(function, **options)
