"""Gradient checkpointing: what a module was told the first time, when backward calls it again.

``torch.utils.checkpoint`` throws results away and computes them again in the backward pass, in whichever thread runs it,
where no executor states which rows are in flight and a dropout's counter has gone on. So every call of a layer, or of a
model, in which something may be computed again leaves itself with the nodes of the autograd graph that it made: the node
that backward is at tells the call, however many calls wait for their gradients. What cannot be told apart is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from enfa.nn.rows import Rows

__all__ = ["Call", "backward_pass", "first_call", "first_step", "leave", "note_step"]

_TOP = getattr(torch._C._autograd, "_top_saved_tensors_default_hooks", None)  # older versions of PyTorch do not tell
_NAME = "enfa call"  # in a node's metadata
_STEPS = "_enfa_steps"  # on the hook of a checkpointed region: the steps drawn in it, in order
_DRAWN = "_enfa_drawn"  # on the hook of its recomputation: how many of them so far
_WAY_OUT = "checkpoint the whole call of the model, as checkpoint(model, plan, use_reentrant=False)"


@dataclass(eq=False)
class Call:
    """A layer, or a model (``rows`` is None), being called."""

    rows: Rows | None
    caller: Call | None
    task: int = field(default_factory=lambda: backward_pass())  # the backward pass that it is called in, or -1
    grad: bool = field(default_factory=torch.is_grad_enabled)
    region: Any = field(default_factory=lambda: _hook())  # the checkpointed region that all of it is in
    comes_again: bool = False
    regions: list[Any] = field(default_factory=list)  # those in which steps were drawn
    steps: list[tuple[nn.Module, Tensor]] = field(default_factory=list)  # drawn where gradients are off: reentrant ones

    def within(self, other: Call) -> bool:
        return self is other or (self.caller is not None and self.caller.within(other))

    def note(self) -> None:
        """Modules say that they are called in it."""
        if not self.comes_again and _may_come_again(self):
            call: Call | None = self
            while call is not None:
                call.comes_again, call = True, call.caller


def backward_pass() -> int:
    """The number of the backward pass that this thread is in, or -1."""
    return torch._C._current_graph_task_id()


def _hook() -> Any:
    """What the innermost checkpointed region, or its recomputation, packs tensors with: one object for each."""
    hooks = None if _TOP is None else _TOP(True)
    return None if hooks is None else hooks[0]


def _may_come_again(call: Call) -> bool:
    """Whether a region being called now may be computed again: its tensors go through hooks, or gradients are off in it."""
    if _TOP is None or _hook() is not None:
        return True
    first = call
    while first.caller is not None:
        first = first.caller
    return first.grad and not torch.is_grad_enabled()


def leave(call: Call, out: Tensor, read: Sequence[Tensor | None]) -> None:
    """Leave a call with the nodes that lead from what it read to what it made, if something in it may come again."""
    if not call.comes_again or out.grad_fn is None:
        return
    seen = {t.grad_fn for t in read if t is not None}
    waiting: list[Any] = [out.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        known = node.metadata.get(_NAME)
        if known is None:
            node.metadata[_NAME] = call
        elif call.rows is not None and not known.within(call):  # whose it is cannot be told: shared between layers
            node.metadata[_NAME] = Call(None, None)
        waiting.extend(before for before, _ in node.next_functions)


def first_call(module: nn.Module) -> Call:
    """The call that a module is called again for, in a backward pass."""
    node: Any = torch._C._current_autograd_node()
    call = None if node is None else node.metadata.get(_NAME)
    if call is None:
        raise RuntimeError(
            f"Expected to know which rows {type(module).__name__} is computed again for, got a backward pass that does not "
            f"tell; {_WAY_OUT}"
        )
    return call


def note_step(module: nn.Module, step: Tensor, call: Call | None) -> None:
    """Keep the step that a dropout draws with, if it may come again."""
    if call is None or not _may_come_again(call):
        return
    hook, step = _hook(), step.clone()
    if hook is not None:
        vars(hook).setdefault(_STEPS, []).append((module, step))
    while call is not None:
        if hook is None:
            call.steps.append((module, step))
        elif hook not in call.regions:
            call.regions.append(hook)
        call = call.caller


def first_step(module: nn.Module) -> Tensor:
    """The step that a dropout drew with the first time, in a backward pass."""
    call, hook = first_call(module), _hook()
    regions = {*call.regions, *([] if call.region is None else [call.region])}
    if hook is None:  # gradients were off: the region has no name, but one call of the module is the one
        found = [step for of, step in call.steps if of is module]
        if len(found) == 1:
            return found[0]
    elif len(regions) == 1:
        steps, drawn = vars(regions.pop()).get(_STEPS, []), vars(hook).get(_DRAWN, 0)
        vars(hook)[_DRAWN] = drawn + 1
        if drawn < len(steps) and steps[drawn][0] is module:
            return steps[drawn][1]
    raise RuntimeError(
        f"Expected one checkpointed call to which a {type(module).__name__} that is computed again can belong, got "
        f"several or none, and so no mask; {_WAY_OUT}"
    )
