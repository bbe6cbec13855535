"""From features to the first table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from enfa.graphs.numbers import is_whole, whole
from enfa.nn.segment import gather
from enfa.plan.table import Plan

__all__ = ["Categorical", "EdgeEncoder", "NodeEncoder"]

_PRODUCT = 2**24  # entries of a 0-1 matrix: beyond that, numbers of nodes stand for features, and rows are looked up


class Categorical(nn.Module):
    """One embedding per column, summed, as OGB's encoders do."""

    first: Tensor

    def __init__(self, cardinalities: Sequence[int], channels: int) -> None:
        super().__init__()
        given = list(cardinalities)
        if not given or not all(is_whole(c, 1) for c in given):
            raise ValueError(f"Expected cardinalities >= 1, one per column, got {given}")
        self.cardinalities = [int(c) for c in given]
        self.weight = nn.Parameter(torch.empty(sum(self.cardinalities), channels))
        for part in self.weight.data.split(self.cardinalities):
            nn.init.xavier_uniform_(part)
        first = torch.tensor([0, *self.cardinalities[:-1]]).cumsum(0)
        self.register_buffer("first", first, persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        if len(values) * len(self.weight) > _PRODUCT:
            return F.embedding_bag(values + self.first, self.weight, mode="sum")
        # as a product with a 0-1 matrix, whose gradient is a product too: there are few distinct feature rows, and
        # adding up the gradients of an embedding's rows would sort on a GPU or add atomically
        there = self.weight.new_zeros(len(values), len(self.weight)).scatter_(1, values + self.first, 1.0)
        return there @ self.weight


def _channels(name: str, given: int | Sequence[int]) -> int | Sequence[int]:
    """A number of float columns, or else cardinalities of categorical ones, which :class:`Categorical` checks."""
    return given if isinstance(given, Iterable) else whole(name, given, 0)


def _check(what: str, channels: int | Sequence[int], values: Tensor | None, largest: tuple[int, ...]) -> None:
    """Compare a plan's features with what the model was made for."""
    if values is None:
        raise ValueError(f"Expected {what} in the plan, but its graphs have none")
    floats = isinstance(channels, int)
    width = channels if isinstance(channels, int) else len(channels)
    kind = "float" if floats else "categorical"
    if values.is_floating_point() != floats or values.shape[1] != width:
        raise ValueError(
            f"Expected {what} with {width} {kind} columns, got {values.shape[1]} columns of {values.dtype}"
        )
    if not isinstance(channels, int):
        for column, (value, limit) in enumerate(zip(largest, channels)):
            if value >= limit:
                raise ValueError(f"Expected {what} column {column} to be below {limit}, got {value}")


class NodeEncoder(nn.Module):
    """Rows of table 0: encoded features, and the channels of the mark concatenated: the paper's cat(X, I_r)."""

    def __init__(self, in_channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__()
        in_channels = _channels("in_channels", in_channels)
        self.in_channels, self.mark_channels = in_channels, whole("mark_channels", mark_channels, 0)
        if isinstance(in_channels, int):
            self.embed: nn.Module = nn.Identity()
            self.out_channels = in_channels + mark_channels
        else:
            self.embed = Categorical(in_channels, hidden_channels)
            self.out_channels = hidden_channels + mark_channels

    def forward(self, plan: Plan, dtype: torch.dtype) -> Tensor:
        _check("node features", self.in_channels, plan.x, plan.limits[0])
        marks = plan.marks.to(dtype)
        if self.mark_channels == 0 and len(marks) == 1:  # nothing is marked: there is nothing to read
            marks = marks[:, :0]
        if marks.shape[1] != self.mark_channels:
            raise ValueError(
                f"Expected marks of {self.mark_channels} channels, got {marks.shape[1]} from the policy "
                f"(set mark_channels={marks.shape[1]})"
            )
        x = plan.x.to(dtype) if plan.x.is_floating_point() else plan.x
        features = gather(self.embed(x), plan.feature, plan.cache, "feature")
        return torch.cat([features, marks.index_select(0, plan.mark)], 1)


class EdgeEncoder(nn.Module):
    """Features of every edge kind: [KE, out_channels]."""

    def __init__(self, edge_channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__()
        edge_channels = _channels("edge_channels", edge_channels)
        self.edge_channels, self.mark_channels = edge_channels, whole("edge_mark_channels", mark_channels, 0)
        if isinstance(edge_channels, int):
            self.embed: nn.Module = nn.Identity()
            self.out_channels = edge_channels + mark_channels
        else:
            self.embed = Categorical(edge_channels, hidden_channels)
            self.out_channels = hidden_channels + mark_channels

    def forward(self, plan: Plan, dtype: torch.dtype) -> Tensor:
        if plan.edge_mark.shape[1] != self.mark_channels:
            raise ValueError(
                f"Expected edge marks of {self.mark_channels} channels, got {plan.edge_mark.shape[1]} from the "
                f"policy (set edge_mark_channels={plan.edge_mark.shape[1]})"
            )
        marks = plan.edge_mark.to(dtype)
        if self.edge_channels == 0:
            return marks
        _check("edge attributes", self.edge_channels, plan.edge_attr, plan.limits[1])
        assert plan.edge_attr is not None
        attr = plan.edge_attr.to(dtype) if plan.edge_attr.is_floating_point() else plan.edge_attr
        return torch.cat([self.embed(attr), marks], 1)
