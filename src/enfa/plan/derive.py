"""What a model reads of a plan, derived from its arrays once and kept beside them.

Each function looks in the ``cache`` of its argument first. A plan that has been prepared (``enfa.plan.prepare``) has
everything there, and carries it from device to device; one that has not gets it when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.plan.kernels.order import add_up, merge_own, split_long
from enfa.plan.order import Lists, SparseMap, by_value, sparse_map
from enfa.plan.table import Layer, Links, Plan, Readout, Sums

__all__ = [
    "FEW_KINDS", "KIND_CHUNK", "bag_map", "bag_sizes", "edge_index", "graph_degrees", "incoming_map", "kind_lists",
    "lower", "lowered", "merged_map", "multisets", "pool_map", "readers", "readouts", "row_map", "segment_ids",
    "sorted_ptr", "sums_map", "target_rows",
]  # fmt: skip

FEW_KINDS = 16  # of so few the sums fit into a GPU's registers, and messages need not stand by kind
KIND_CHUNK = 256  # messages of one edge kind that are summed in one piece


def _kept(cache: dict[str, Any], name: str, make: Callable[[], Any]) -> Any:
    if name not in cache:
        cache[name] = make()
    return cache[name]


def segment_ids(ptr: Tensor, total: int) -> Tensor:
    """int64 [total]: the list of each entry; of those behind the end of the last one, in a padded plan, the number of lists."""
    count = torch.cat([ptr.diff(), total - ptr[-1:]])
    return torch.repeat_interleave(torch.arange(len(count), device=ptr.device), count, output_size=total)


def sorted_ptr(ids: Tensor, size: int) -> Tensor:
    """[size+1]: where each number begins among sorted ones."""
    return torch.searchsorted(ids, torch.arange(size + 1, dtype=ids.dtype, device=ids.device))


def readers(index: Tensor, size: int, cache: dict[str, Any], name: str) -> Lists:
    """For each row of a table of ``size`` rows, the places of ``index`` that read it."""

    def make() -> Lists:
        found = by_value(None, index.cpu(), size)
        return found if index.device.type == "cpu" else found.to(index.device)

    return _kept(cache, name, make)


def target_rows(links: Links) -> Tensor:
    """int64 [M]: the row that each message goes to."""
    return _kept(links.cache, "targets", lambda: segment_ids(links.in_ptr, len(links.in_row)))


def edge_index(links: Links) -> Tensor:
    """int64 [2, M], as PyG wants it: rows of the table before, and conv rows."""
    return _kept(links.cache, "edge_index", lambda: torch.stack([links.in_row.long(), target_rows(links)]))


def incoming_map(links: Links, size: int) -> SparseMap:
    """The sum of the incoming rows."""
    return _kept(links.cache, "incoming", lambda: sparse_map(links.in_ptr, links.in_row, size))


def _merged(links: Links, size: int, kinds: bool) -> SparseMap:
    total = links.num_rows + len(links.in_row)
    ptr, index = (torch.empty(length, dtype=torch.int32) for length in (links.num_rows + 1, total))
    kind = torch.empty_like(index) if kinds else None
    raw = (t.cpu().numpy() for t in (links.self_row, links.in_ptr, links.in_row, links.in_edge))
    merge_own(*raw, ptr.numpy(), index.numpy(), None if kind is None else kind.numpy())
    found = sparse_map(ptr, index, size, other=kind)
    return found if links.in_row.device.type == "cpu" else found.to(links.in_row.device)


def merged_map(links: Links, size: int, kinds: bool = False) -> SparseMap:
    """The sum of a row's own row and its incoming rows; the kind of an own row is -1."""
    return _kept(links.cache, "merged kinds" if kinds else "merged", lambda: _merged(links, size, kinds))


def kind_lists(links: Links, kinds: int) -> Lists | None:
    """The messages of each edge kind: target row, and in ``other`` the source row. All of them in pieces. None for few."""
    if kinds <= FEW_KINDS:
        return None

    def make() -> Lists:
        raw = [t.cpu() for t in (links.in_ptr, links.in_edge, links.in_row)]
        found = by_value(raw[0], raw[1], kinds, other=raw[2])
        room = len(raw[1]) // KIND_CHUNK + kinds
        found.extra, found.long = torch.zeros(3, room, dtype=torch.int32), torch.zeros(3, kinds, dtype=torch.int32)
        split_long(found.ptr.numpy(), KIND_CHUNK, 0, found.extra.numpy(), found.long.numpy())
        return found.to(links.in_row.device)

    return _kept(links.cache, "kinds", make)


def graph_degrees(links: Links, size: int) -> tuple[Tensor, Tensor]:
    """In-degrees of the rows before and of the rows of a layer that has all edges of the original graph."""

    def make() -> tuple[Tensor, Tensor]:
        here = links.in_ptr.diff()
        before = torch.zeros(size, dtype=here.dtype, device=here.device)
        before[links.self_row] = here
        return before, here

    return _kept(links.cache, "degrees", make)


def sums_map(sums: Sums, size: int) -> SparseMap:
    return _kept(sums.cache, "sum", lambda: sparse_map(sums.ptr, sums.row, size, sums.count))


def bag_sizes(sums: Sums) -> Tensor:
    """int64 [n]: the sum of the counts of every list, at least 1."""

    def make() -> Tensor:
        total = torch.zeros(len(sums.ptr) - 1, dtype=torch.int64, device=sums.ptr.device)
        return total.index_add_(0, segment_ids(sums.ptr, len(sums.row)), sums.count.long()).clamp_(min=1)

    return _kept(sums.cache, "sizes", make)


def lowered(sums: Sums, own: Tensor, rows: int) -> Sums:
    """Over each row's own row instead. Rows that an edit has not reached one layer earlier cancel: the lists get shorter."""
    raw = [t.cpu().numpy() for t in (own, sums.ptr, sums.row, sums.count)]
    place, net = np.full(rows, -1, np.int32), np.empty((2, len(raw[2])), np.int32)
    ptr, new = np.zeros(len(raw[1]), np.int32), np.empty((2, len(raw[2]) + 1), np.int32)
    length = add_up(*raw, place, *net, ptr, *new)
    found = Sums(torch.from_numpy(ptr), *(torch.from_numpy(part[:length]) for part in new))
    return found if own.device.type == "cpu" else found.to(own.device)


def lower(readout: Readout, layer: Layer, rows: int) -> Readout:
    """The same readout over the table before ``layer``, of so many rows: every row's own row one layer earlier."""
    own = layer.previous
    base, root, nodes = readout.base_row, readout.root_row, readout.nodes
    return replace(
        readout,
        base_row=None if base is None else own.index_select(0, base),
        delta=lowered(readout.delta, own, rows),
        root_row=None if root is None else own[root],
        nodes=None if nodes is None else lowered(nodes, own, rows),
    )


def readouts(plan: Plan) -> list[Readout]:
    """Readouts of tables 1…L."""

    def make() -> list[Readout]:
        found = [plan.readout]
        for layer, before in zip(plan.layers[:0:-1], plan.layers[-2::-1]):
            found.insert(0, lower(found[0], layer, before.num_rows))
        return found

    return _kept(plan.cache, "readouts", make)


def row_map(readout: Readout, size: int, num_graphs: int) -> SparseMap:
    """From rows to the sums of every delta and, behind them, of every graph's base rows."""

    def make() -> SparseMap:
        delta, base, of_base = readout.delta, readout.base_row, readout.base_graph
        if base is None or of_base is None:
            return sparse_map(delta.ptr, delta.row, size, delta.count)
        first = sorted_ptr(of_base, num_graphs)
        ptr = torch.cat([delta.ptr, (first[1:] + len(delta.row)).to(torch.int32)])
        weight = torch.cat([delta.count, torch.ones_like(base, dtype=delta.count.dtype)])
        return sparse_map(ptr, torch.cat([delta.row, base]), size, weight)

    return _kept(readout.cache, "rows", make)


def pool_map(readout: Readout, num_graphs: int) -> SparseMap:
    """From the sums of :func:`row_map` to subgraphs: a delta, and the base rows of its graph where there are any."""

    def make() -> SparseMap:
        deltas, subs = len(readout.delta.ptr) - 1, len(readout.sub_delta)
        if readout.base_row is None:
            return sparse_map(torch.arange(subs + 1, device=readout.sub_delta.device), readout.sub_delta, deltas)
        of_graph = readout.sub_graph if readout.sub_base is None else readout.sub_base
        pair = torch.stack([readout.sub_delta, of_graph + deltas], 1).reshape(-1)
        ptr = torch.arange(0, 2 * subs + 1, 2, device=pair.device)
        if readout.sub_base is not None:  # some have their delta alone
            has = pair < deltas + num_graphs
            pair, ptr = pair[has], torch.cat([ptr[:1], has.cumsum(0)])[ptr]
        return sparse_map(ptr, pair, deltas + num_graphs)

    return _kept(readout.cache, "pool", make)


def multisets(readout: Readout, rows: int, num_graphs: int) -> Sums:
    """The rows of every subgraph with their multiplicities, all > 0. As long as the bags: n squared at worst."""

    def make() -> Sums:
        delta, subs, device = readout.delta, len(readout.sub_delta), readout.sub_delta.device
        length = delta.ptr.diff()[readout.sub_delta]
        sub = torch.repeat_interleave(torch.arange(subs, device=device), length)
        first = torch.repeat_interleave(delta.ptr[readout.sub_delta] - length.cumsum(0) + length, length)
        entry = first + torch.arange(len(sub), device=device)
        key, count = sub * rows + delta.row[entry], delta.count[entry].long()
        if readout.base_row is not None and readout.base_graph is not None:
            ptr = sorted_ptr(readout.base_graph, num_graphs)
            length = ptr.diff()[readout.sub_graph]
            if readout.sub_base is not None:
                length = length * (readout.sub_base < num_graphs)
            sub = torch.repeat_interleave(torch.arange(subs, device=device), length)
            first = torch.repeat_interleave(ptr[readout.sub_graph] - length.cumsum(0) + length, length)
            node = first + torch.arange(len(sub), device=device)
            key = torch.cat([key, sub * rows + readout.base_row[node]])
            count = torch.cat([count, torch.ones_like(node)])
        key, place = torch.unique(key, return_inverse=True)
        count = torch.zeros_like(key).index_add_(0, place, count)
        key, count = key[count > 0], count[count > 0]
        return Sums(sorted_ptr(key // max(rows, 1), subs), key % max(rows, 1), count)

    return _kept(readout.cache, "multisets", make)


def bag_map(readout: Readout, num_graphs: int) -> SparseMap:
    """From subgraphs to graphs."""

    def make() -> SparseMap:
        subs = len(readout.sub_graph)
        index = torch.arange(subs, device=readout.sub_graph.device)
        return sparse_map(sorted_ptr(readout.sub_graph, num_graphs), index, subs)

    return _kept(readout.cache, "bag", make)
