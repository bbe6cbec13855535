"""A dataset as a stream of blocks, each the graphs of one shard: nothing else of it is ever held."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from itertools import islice, repeat
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.check import one_by_one
from enfa.graphs.labels import labels
from enfa.graphs.numbers import whole
from enfa.graphs.unopened import checked
from enfa.plan.gradients import refuse_gradients

__all__ = ["SIZE", "Block", "Deferred", "Flat", "Raw", "blocks", "shard_sizes"]

SIZE = 5_000  # graphs of a shard by default: with more, tables outgrow the caches, and finding rows takes longer


class Flat(Protocol):
    """A source of graphs that lie end to end in arrays, as :class:`enfa.datasets.flat.FlatGraphs` has them."""

    def flat_blocks(self, sizes: Iterable[int]) -> Iterator[tuple[Any, np.ndarray | None]]:
        """Blocks of the given numbers of graphs, the last maybe smaller, and their labels."""


class Raw(Protocol):
    """A source that is quickly read, and slowly made graphs of, such as lines of text: workers do the latter."""

    def raw_blocks(self, sizes: Iterable[int]) -> Iterator[Any]:
        """What becomes the given numbers of graphs, the last block maybe smaller. It has a length."""

    def graphs_of(self, raw: Any) -> list[Data]: ...


@dataclass(frozen=True)
class Deferred:
    """A block that is made where it is compiled."""

    source: Raw
    raw: Any
    first: int

    def load(self) -> Block:
        graphs = self.source.graphs_of(self.raw)
        if not graphs:
            raise ValueError(
                f"Expected a graph among the {len(self.raw)} from number {self.first} on, got none that can be read"
            )
        return _checked(graphs, self.first, None)


@dataclass(frozen=True)
class Block:
    """Graphs of a dataset, one behind the other, with labels and attributes; ``graphs.first`` is the place of the first."""

    graphs: GraphSet
    y: Tensor | None
    attr: dict[str, Tensor]

    def load(self) -> Block:
        return self

    @property
    def where(self) -> str:
        """For errors."""
        return f"graphs {self.graphs.first} to {self.graphs.first + self.graphs.num_graphs - 1}"

    def __getstate__(self) -> dict[str, Any]:
        """For other processes: every array of integers in the smallest type that holds it, a third of the bytes."""
        held = {field.name: getattr(self.graphs, field.name) for field in fields(self.graphs)}
        small = {name: _narrow(value) for name, value in held.items() if isinstance(value, np.ndarray)}
        attr = {name: value.numpy() for name, value in self.attr.items()}
        return {"graphs": held | small, "y": None if self.y is None else self.y.numpy(), "attr": attr}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = state["graphs"]
        wide = {name: value.astype(np.int64) for name, value in held.items() if _is_narrow(value)}
        y, attr = state["y"], state["attr"]
        object.__setattr__(self, "graphs", GraphSet(**held | wide))
        object.__setattr__(self, "y", None if y is None else torch.from_numpy(y))
        object.__setattr__(self, "attr", {name: torch.from_numpy(value) for name, value in attr.items()})


def _narrow(array: np.ndarray) -> np.ndarray:
    return array.astype(np.min_scalar_type(int(array.max(initial=0)))) if array.dtype == np.int64 else array


def _is_narrow(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "u"


def shard_sizes(dataset: Any, shards: int | None, size: int | None) -> tuple[Iterable[int], int | None]:
    """How many graphs each shard has, one after the other, and how many there are in all, where that is known."""
    total = len(dataset) if hasattr(dataset, "__len__") else None
    if shards is None:
        return repeat(SIZE if size is None else whole("shard_size", size, 1)), total
    if size is not None:
        raise ValueError(f"Expected either shards or shard_size, got shards={shards!r}, shard_size={size!r}")
    if total is None:
        raise ValueError(f"Expected shard_size for a stream whose length is not known, got shards={shards!r}")
    count = whole("shards", shards, 1, max(total, 1))
    return np.diff(np.arange(count + 1) * total // count).tolist(), total


def blocks(dataset: Any, sizes: Iterable[int]) -> Iterator[Block | Deferred]:
    """The graphs of a dataset, checked: any iterable of PyG graphs, or a source that is :class:`Flat` or :class:`Raw`.

    Which attributes of graphs ride along is seen in the first block; the others are asked for the same.
    """
    first = 0
    if hasattr(dataset, "flat_blocks"):
        for flat, y in dataset.flat_blocks(sizes):
            yield _from_flat(flat, y, first)
            first += len(flat.num_nodes)
        return
    if hasattr(dataset, "raw_blocks"):
        for raw in dataset.raw_blocks(sizes):
            yield Deferred(dataset, raw, first)
            first += len(raw)
        return
    if isinstance(dataset, Data):  # also a Batch, which iterates over its attributes
        what = f"a Batch of {dataset.num_graphs}" if isinstance(dataset, Batch) else "a single Data object"
        raise TypeError(f"Expected an iterable of graphs, got {what}")
    if not isinstance(dataset, Iterable) and not hasattr(dataset, "__getitem__"):
        raise TypeError(f"Expected an iterable of graphs, got {type(dataset).__name__}")
    graphs, known = one_by_one(dataset), None
    for size in sizes:
        some = list(islice(graphs, size))
        if not some:
            return
        block = _checked(some, first, known)
        known = list(block.attr) if known is None else known
        yield block
        first += len(some)


def _checked(graphs: list[Data], first: int, names: list[str] | None) -> Block:
    checked = check_graphs(graphs, first)
    refuse_gradients(graphs, first)
    attr = graph_attributes(graphs, names)
    return Block(checked, labels(graphs, first), {name: value.detach() for name, value in attr.items()})


def _from_flat(flat: Any, y: np.ndarray | None, first: int) -> Block:
    graphs = checked(flat, first)
    if y is not None and y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"Expected labels of at least one column, got {list(y.shape)}")
    return Block(graphs, None if y is None else torch.from_numpy(np.ascontiguousarray(y)), {})
