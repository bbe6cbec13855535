"""Which rows a row reads: lists of rows, with counts, or with the kinds of the edges that they are read along."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from enfa.plan.arrays import Arrays

__all__ = ["Links", "Sums"]


def fits_int32(values: Tensor) -> bool:
    if values.dtype == torch.int32 or values.is_meta or not values.numel():
        return True
    return int(values.max()) < 2**31 and int(values.min()) >= -(2**31)


def _shorten(part: Any, *names: str) -> None:
    """int32 arrays of whatever integers were given: half the bytes to move."""
    for name in names:
        given = getattr(part, name)
        if given.dtype != torch.int32:
            if not fits_int32(given):
                kind = type(part).__name__
                raise ValueError(
                    f"Expected fewer than 2^31 rows and messages in a plan, got {int(given.max())} in '{name}' of its "
                    f"{kind}: plan fewer graphs at a time"
                )
            setattr(part, name, given.to(torch.int32))


@dataclass(eq=False)
class Sums(Arrays):
    """Weighted sums over rows: entry n is the sum of ``count * row`` over ``ptr[n]:ptr[n+1]``."""

    ptr: Tensor  # int32 [n+1]
    row: Tensor  # int32 [k]
    count: Tensor  # int32 [k], or int8 where all of a dataset fit; may be negative
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        _shorten(self, "ptr", "row")
        if self.count.dtype != torch.int8:
            _shorten(self, "count")


@dataclass(eq=False)
class Links(Arrays):
    """R rows, each with its own row and its incoming rows in the table before."""

    self_row: Tensor  # int32 [R]
    in_ptr: Tensor  # int32 [R+1]
    in_row: Tensor  # int32 [M]
    in_edge: Tensor  # int32 [M], row of Plan.edge_attr and Plan.edge_mark
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        _shorten(self, "self_row", "in_ptr", "in_row", "in_edge")

    @property
    def num_rows(self) -> int:
        return self.self_row.shape[0]
