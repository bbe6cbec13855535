"""The plan: which rows there are, and how each table of rows is computed from the one before.

A plan is index arithmetic only. It knows neither what a feature means nor which policy made the subgraphs, and the
model that runs on it does not know how many rows it saves.

Worked example: the path a - b - c under node marking, one GIN layer, equal features everywhere. The conventional
bag has nine (subgraph, node) pairs. Table 0 of the distinct plan has two rows, "unmarked" (0) and "marked" (1).
Table 1 starts with the base rows, those of the unedited path that some subgraph has, too, then has those that an edit
reached::

    row            self_row   incoming   copies   stands for (subgraph, node)
    0  end             0      [0]          2      (a, c) (c, a)       the base row of a and of c
    1  end, marked     1      [0]          2      (a, a) (c, c)
    2  middle          0      [0, 1]       2      (a, b) (c, b)
    3  middle, marked  1      [0, 0]       1      (b, b)
    4  end             0      [1]          2      (b, a) (b, c)

so ``self_row = [0, 1, 0, 1, 0]``, ``in_ptr = [0, 1, 2, 4, 6, 7]``, ``in_row = [0, 0, 0,1, 0,0, 1]``. There is no base row of b,
which every subgraph affects. The readout has ``base_row = [0, 0]``, for a and c, and two distinct deltas: subgraphs a and c
swap {0} for {1, 2}, subgraph b swaps {0, 0} for {3, 4, 4}; so ``sub_delta = [0, 1, 0]``, and the lists of (row, count) are
``[(0, -1), (1, 1), (2, 1)]`` and ``[(0, -2), (3, 1), (4, 2)]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.cost import Cost
from enfa.plan.spec import Spec

__all__ = ["Context", "Layer", "Links", "Plan", "Readout", "Sums"]

def _check(what: str, index: Tensor, limit: int) -> None:
    if index.numel() and not 0 <= int(index.min()) <= int(index.max()) < limit:
        raise ValueError(
            f"Expected '{what}' from 0 to {limit - 1}, got {int(index.min())} to {int(index.max())}"
        )


def _check_ptr(what: str, ptr: Tensor, length: int) -> None:
    if ptr.ndim != 1 or len(ptr) < 1 or int(ptr[0]) != 0 or int(ptr[-1]) != length or bool((ptr.diff() < 0).any()):
        raise ValueError(f"Expected '{what}' to rise from 0 to {length}, got {ptr.tolist()[:3]}...")


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
    count: Tensor  # int32 [k], or int8 where whoever made it knows that they fit; may be negative
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        _shorten(self, "ptr", "row")
        if self.count.dtype != torch.int8:
            _shorten(self, "count")

    def check(self, what: str, rows: int) -> None:
        _check_ptr(f"{what}.ptr", self.ptr, len(self.row))
        _check(f"{what}.row", self.row, rows)


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
        return len(self.self_row)

    def check(self, what: str, rows: int, kinds: int) -> None:
        if len(self.in_ptr) != self.num_rows + 1:
            raise ValueError(f"Expected '{what}.in_ptr' of length {self.num_rows + 1}, got {len(self.in_ptr)}")
        if self.in_row.shape != self.in_edge.shape:
            raise ValueError(
                f"Expected '{what}.in_edge' of shape {list(self.in_row.shape)}, got {list(self.in_edge.shape)}"
            )
        _check_ptr(f"{what}.in_ptr", self.in_ptr, len(self.in_row))
        _check(f"{what}.self_row", self.self_row, rows)
        _check(f"{what}.in_row", self.in_row, rows)
        _check(f"{what}.in_edge", self.in_edge, kinds)


@dataclass(eq=False)
class Context(Arrays):
    """Per distinct context a sum over the bag, and optionally a layer over the original graph's edges."""

    sums: Sums
    links: Links | None
    copies: Tensor  # int64 [C]: how many original nodes have this (encoded) context


@dataclass(eq=False)
class Layer(Arrays):
    """Table i. Conv rows come from ``links``; the table is ``conv[source] (+ context[context_row])``.

    ``source`` is the paper's replacement step h[pvt>i] = ho[ind[pvt>i]]: a gather and nothing else.
    """

    links: Links
    # int32 [R], int64 where it must be: (subgraph, node) pairs that a conv row stands for; 0 for one that nobody counts
    copies: Tensor
    source: Tensor | None = None  # int64 [R'], None: the conv rows themselves
    context: Context | None = None
    context_row: Tensor | None = None  # int64 [R']
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        if fits_int32(self.copies):  # one row may stand for more (subgraph, node) pairs than that
            _shorten(self, "copies")

    @property
    def num_rows(self) -> int:
        return self.links.num_rows if self.source is None else len(self.source)

    @property
    def previous(self) -> Tensor:
        """int32 [R']: the row of the same (subgraph, node) in the table before."""
        return self.links.self_row if self.source is None else self.links.self_row[self.source]


@dataclass(eq=False)
class Readout(Arrays):
    """What each subgraph pools: its graph's base rows (if the plan has any) plus a delta.

    A node that every subgraph of the bag affects, or lacks, has no base row here: what no subgraph has is in no pool.
    """

    base_row: Tensor | None  # int32 [B] row of table L; None: the deltas are complete
    base_graph: Tensor | None  # int64 [B], sorted
    delta: Sums  # over rows of table L
    sub_delta: Tensor  # int64 [S]
    sub_graph: Tensor  # int64 [S]
    sub_size: Tensor  # int64 [S], nodes of each subgraph
    sub_base: Tensor | None = None  # int64 [S], the graph whose base rows count, or the number of graphs for none
    # only for spec.output == "root": T subgraphs that have roots, one or two each
    root_row: Tensor | None = None  # int64 or int32 [T, roots], row of table L
    root_node: Tensor | None = None  # int64 [T, roots], nodes counted through the plan's graphs
    # only for spec.output == "node"
    nodes: Sums | None = None  # for every node of the plan's graphs, its rows of table L over the bag
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    def __post_init__(self) -> None:
        if self.base_row is not None:
            _shorten(self, "base_row")


@dataclass(eq=False)
class Plan(Arrays):
    """Tables 0…L for a list of graphs."""

    kind: str
    spec: Spec
    num_graphs: int
    x: Tensor  # [K, F] feature rows
    feature: Tensor  # int64 [R0], row of x
    mark: Tensor  # int64 [R0], row of marks
    marks: Tensor  # float [values, channels]
    degree: Tensor | None  # int64 [R0], only for spec.degrees
    graph: Tensor | None  # int64 [R0], only for spec.share == "graph"
    edge_attr: Tensor | None  # [KE, FE]
    edge_mark: Tensor  # float [KE, channels]
    layers: list[Layer]
    readout: Readout
    limits: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())  # largest categorical values of x and edge_attr
    num_pairs: int = 0  # (subgraph, node) pairs of the conventional model
    num_nodes: int = 0  # of the graphs
    y: Tensor | None = None
    graph_ids: Tensor | None = None  # int64 [num_graphs], places in the compiled dataset
    cache: dict[str, Any] = field(default_factory=dict, repr=False, init=False)

    @property
    def device(self) -> torch.device:
        return self.feature.device

    def cost(self) -> Cost:
        """Rows and messages per layer, and bytes of all arrays."""
        return Cost(
            rows=[layer.links.num_rows for layer in self.layers],
            edges=[len(layer.links.in_row) for layer in self.layers],
            bytes=sum(t.numel() * t.element_size() for t in self.tensors(cached=False)),
        )

    def check(self) -> Plan:
        """Raise a ValueError that names the array if the tables do not fit together."""
        if len(self.layers) != self.spec.num_layers:
            raise ValueError(f"Expected {self.spec.num_layers} layers, got {len(self.layers)}")
        _check("feature", self.feature, len(self.x))
        _check("mark", self.mark, len(self.marks))
        rows, kinds = len(self.feature), len(self.edge_mark)
        for i, layer in enumerate(self.layers, 1):
            layer.links.check(f"layer {i}.links", rows, kinds)
            conv_rows = layer.links.num_rows
            if len(layer.copies) != conv_rows:
                raise ValueError(f"Expected 'layer {i}.copies' of length {conv_rows}, got {len(layer.copies)}")
            if layer.source is not None:
                _check(f"layer {i}.source", layer.source, conv_rows)
            if layer.context is not None and layer.context_row is not None:
                read = rows if self.spec.context == "input" else conv_rows
                layer.context.sums.check(f"layer {i}.context", read)
                contexts = len(layer.context.sums.ptr) - 1
                if layer.context.links is not None:
                    layer.context.links.check(f"layer {i}.context.links", contexts, kinds)
                _check(f"layer {i}.context_row", layer.context_row, len(layer.context.copies))
            rows = layer.num_rows
        if self.readout.base_row is not None:
            _check("base_row", self.readout.base_row, rows)
        self.readout.delta.check("delta", rows)
        _check("sub_delta", self.readout.sub_delta, len(self.readout.delta.ptr) - 1)
        if self.readout.root_row is not None:
            _check("root_row", self.readout.root_row, rows)
        if self.readout.nodes is not None:
            self.readout.nodes.check("nodes", rows)
        return self
