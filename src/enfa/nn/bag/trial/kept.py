"""What a conv leaves in its attributes while it passes messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from enfa.nn.bag.edges import StandIn

__all__ = ["not_kept"]


class _Kept(StandIn):
    what = "what a conv has kept of its messages"


@contextmanager
def not_kept(view: nn.Module) -> Iterator[None]:
    """Tensors that a conv's own code for messages leaves in its attributes are there for looking at after the pass. While it
    is traced, stand-ins refuse to be computed with."""
    before = [(vars(part), dict(vars(part))) for part in view.modules()]
    yield
    for own, had in before:
        for name, value in own.items():
            if isinstance(value, Tensor) and value.ndim and had.get(name) is not value:
                own[name] = torch.empty(0, device=value.device).as_subclass(_Kept)
