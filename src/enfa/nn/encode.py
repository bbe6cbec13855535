"""From features to rows."""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from enfa.graphs.numbers import is_whole, whole
from enfa.nn.bag.bag import Bag
from enfa.nn.rowwise.refusal import check_devices
from enfa.nn.rowwise.rows import Rows

__all__ = ["Categorical", "EdgeEncoder", "NodeEncoder", "OneHotEdges", "SumEncoder"]

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
        check_devices(values.device, (self.weight,))
        if len(values) * len(self.weight) > _PRODUCT:
            return F.embedding_bag(values + self.first, self.weight, mode="sum")
        # as a product with a 0-1 matrix, whose gradient is a product too: there are few distinct feature rows, and
        # adding up the gradients of an embedding's rows would sort on a GPU or add atomically
        there = self.weight.new_zeros(len(values), len(self.weight)).scatter_(1, values + self.first, 1.0)
        return there @ self.weight


class OneHot(nn.Module):
    """A channel for every value of every column."""

    first: Tensor
    eye: Tensor

    def __init__(self, cardinalities: Sequence[int]) -> None:
        super().__init__()
        self.register_buffer("first", torch.tensor([0, *cardinalities[:-1]]).cumsum(0), persistent=False)
        self.register_buffer("eye", torch.eye(sum(cardinalities)), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        check_devices(values.device, (self.eye,))
        return self.eye[values + self.first].sum(1)


def _channels(name: str, given: int | Sequence[int]) -> int | Sequence[int]:
    """A number of float columns, or else cardinalities of categorical ones, which :class:`Categorical` checks."""
    return given if isinstance(given, Iterable) else whole(name, given, 0)


def _check(what: str, channels: int | Sequence[int], values: Tensor, largest: tuple[int, ...], name: str, given: str) -> None:
    """Compare a plan's features, which graphs have as ``name``, with what the model was made for, by ``given``."""
    floats = isinstance(channels, int)
    width = channels if isinstance(channels, int) else len(channels)
    kind = "float" if floats else "categorical"
    if values.is_floating_point() != floats or values.shape[1] != width:
        hint = ""
        if floats and values.is_floating_point():
            hint = f": set {given}={values.shape[1]}"
            hint += f" ({name} of shape [n] is one column, {name}[:, None])" if values.shape[1] == 1 else ""
            hint += "; marks come on their own" if name == "x" else ""
        elif floats:
            hint = f": make them floats ({name}.float()), or give {given}=[number of categories, ...], one for each column"
        raise ValueError(f"Expected {what} with {width} {kind} columns, got {values.shape[1]} columns of {values.dtype}{hint}")
    if not isinstance(channels, int):
        for column, (value, limit) in enumerate(zip(largest, channels)):
            if value >= limit:
                raise ValueError(f"Expected {what} column {column} to be below {limit}, got {value}")


class Encoder(nn.Module):
    """Features as they are or embedded, beside the channels of the mark: the paper's cat(X, I_r)."""

    names = ("in_channels", "mark_channels")  # of the model's arguments

    def __init__(self, channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__()
        self.channels = _channels(self.names[0], channels)
        self.mark_channels = whole(self.names[1], mark_channels, 0)
        if isinstance(self.channels, int):
            self.embed: nn.Module = nn.Identity()
            width = self.channels
        else:
            self.embed = Categorical(self.channels, hidden_channels)
            width = hidden_channels
        self.out_channels = width + self.mark_channels

    def encoded(self, rows: Any, marks: Any) -> Rows:
        if not isinstance(self.channels, int):
            rows = rows.of(self.embed(rows.value))
        beside: Any = torch.cat([rows, marks.to(rows.dtype)], 1) if self.mark_channels else rows
        return beside


class NodeEncoder(Encoder):
    """Rows of table 0."""

    def forward(self, bag: Bag) -> Rows:
        if bag.categories:
            raise ValueError(
                f"Expected features in 'x' alone, got {len(bag.categories)} columns of 'x_cat' beside them, which this model "
                f"does not read: write one that reads bag.x_cat, or embed them into 'x'"
            )
        _check("node features", self.channels, bag.x_rows, bag.limits[0], "x", self.names[0])
        marks = bag.mark
        if self.mark_channels == 0 and len(bag.mark_rows) == 1:  # nothing is marked: there is nothing to read
            marks = marks[:, :0]
        if marks.shape[1] != self.mark_channels:
            raise ValueError(
                f"Expected marks of {self.mark_channels} channels, got {marks.shape[1]} from the policy "
                f"(set mark_channels={marks.shape[1]})"
            )
        return self.encoded(bag.x, marks)


class SumEncoder(NodeEncoder):
    """Rows of table 0: an embedding of the features plus one of the mark, where the mark is one-hot: of a distance, say."""

    def __init__(self, channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__(channels, hidden_channels, mark_channels)
        if isinstance(self.channels, int):
            self.embed = nn.Linear(self.channels, hidden_channels)
        self.mark = nn.Linear(self.mark_channels, hidden_channels, bias=False)
        nn.init.normal_(self.mark.weight)  # as an nn.Embedding is drawn
        self.out_channels = hidden_channels

    def encoded(self, rows: Any, marks: Any) -> Rows:
        features = rows.of(self.embed(rows.value))
        return features + self.mark(marks.to(features.dtype)) if self.mark_channels else features


class EdgeEncoder(Encoder):
    """A row for every kind of edge."""

    names = ("edge_channels", "edge_mark_channels")

    def forward(self, bag: Bag) -> Rows:
        marks = bag.edge_mark
        if marks.shape[1] != self.mark_channels:
            raise ValueError(
                f"Expected edge marks of {self.mark_channels} channels, got {marks.shape[1]} from the "
                f"policy (set edge_mark_channels={marks.shape[1]})"
            )
        if self.channels == 0:
            return marks
        rows = bag.edge_attr
        _check("edge attributes", self.channels, rows.value, bag.limits[1], "edge_attr", self.names[0])
        return self.encoded(rows, marks)


class OneHotEdges(EdgeEncoder):
    """A row for every kind of edge, categorical columns one-hot: for convs that embed edges by weights of their own."""

    def __init__(self, channels: int | Sequence[int], hidden_channels: int, mark_channels: int) -> None:
        super().__init__(channels, hidden_channels, mark_channels)
        if isinstance(self.embed, Categorical):
            self.embed = OneHot(self.embed.cardinalities)
            self.out_channels = len(self.embed.eye) + self.mark_channels
