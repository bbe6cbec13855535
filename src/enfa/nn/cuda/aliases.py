"""Weights under other names, for what is captured.

Autograd has a node for every parameter that adds up its gradient, on the stream on which it was first used, and keeps it as
long as any loss of before is around. A capture that met such a node would have to wait for a stream that is not captured. New
parameters in the same memory have new nodes, and no hooks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

__all__ = ["aliased"]


@contextmanager
def aliased(model: nn.Module) -> Iterator[list[tuple[nn.Parameter, nn.Parameter]]]:
    """In here every parameter of the model that learns has another in its place, in the same memory. Yields (old, new)."""
    places = [(m._parameters, name, p) for m in model.modules() for name, p in m._parameters.items()]
    learning = {id(p): p for _, _, p in places if p is not None and p.requires_grad}
    new = {number: nn.Parameter(p.detach()) for number, p in learning.items()}
    try:
        for held, name, p in places:
            if id(p) in new:
                held[name] = new[id(p)]
        yield [(p, new[number]) for number, p in learning.items()]
    finally:
        for held, name, p in places:
            held[name] = p
