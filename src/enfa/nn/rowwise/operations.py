"""What may be done with Rows: what is known to act on each row by itself. Everything else is refused.

Every function of PyTorch that is allowed, with the function that checks its arguments and calls it on tensors. What each of
them gives is tested against the same function on every row alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F

from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise.arguments import Handler
from enfa.nn.rowwise.axes import AXES
from enfa.nn.rowwise.elementwise import ELEMENTWISE
from enfa.nn.rowwise.exact import counted_batch_norm, counted_module, keyed_dropout
from enfa.nn.rowwise.products import PRODUCTS

__all__ = ["HANDLERS"]


def _as_it_is(handler: Callable) -> Handler:
    """For functions of one spelling: their arguments are the handler's."""
    return lambda func, name, args, kwargs: handler(*args, **kwargs)


HANDLERS: dict[Any, tuple[Handler, str]] = {
    **ELEMENTWISE, **AXES, **PRODUCTS,
    F.batch_norm: (_as_it_is(counted_batch_norm), "batch_norm"), F.dropout: (_as_it_is(keyed_dropout), "dropout"),
    CountedBatchNorm.forward: (_as_it_is(counted_module), "CountedBatchNorm"),
}  # fmt: skip
