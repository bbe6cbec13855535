"""A model gone through once, so that the kernels of its first step are compiled beside each other."""

from __future__ import annotations

import copy
import gc
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import Any

import torch
from torch import nn

from enfa.nn.triton import accelerated
from enfa.plan.table import Plan

__all__ = ["rehearse"]


def rehearse(model: nn.Module, plan: Plan, mixed: Callable[[], AbstractContextManager[Any]]) -> bool:
    """Compile what ``model(plan)``, and its backward pass where gradients are on, will launch; whether there was anything new.

    Done to a copy, so that weights, statistics and gradients stay what they are; generators, too. Values are nonsense
    meanwhile, so it is for models that compute no places in memory from them: those of this package.
    """
    device = next(model.parameters()).device
    if not accelerated(torch.empty(0, device=device)):
        return False
    from enfa.nn.triton.rehearsal import can_rehearse, rehearsal

    if not can_rehearse():
        return False
    new: list[Any] = []
    with suppress(Exception), torch.random.fork_rng([device] if device.type == "cuda" else []), rehearsal(new):
        if not _gone_through(model, plan, mixed):
            gc.collect()  # while launches are none: what a norm has held back it computes when it is let go of
    return bool(new)


def _gone_through(model: nn.Module, plan: Plan, mixed: Callable[[], AbstractContextManager[Any]]) -> bool:
    """Whether that worked; if not, the step itself will say why. Nothing of it is left behind."""
    try:
        with mixed():
            out = copy.deepcopy(model)(plan)
        if out.requires_grad:
            out.float().sum().backward()
    except Exception:  # of whatever kind: models fail in many ways, and the step that follows fails in the same one
        return False
    return True
