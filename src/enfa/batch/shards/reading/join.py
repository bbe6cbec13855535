"""Tables of several shards, side by side in one: what a batch of graphs of all of them is cut out of.

Rows are shared within each shard, as before, so nothing is hashed: numbers of rows move by what stands before them, and the
kinds of edges and marks, which shards number as they meet them, are translated. Cost: a pass over the arrays.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from enfa.batch.dataset import CompiledDataset
from enfa.edits import Edits
from enfa.edits.join import join_edits
from enfa.edits.marks import with_marks
from enfa.graphs import GraphSet
from enfa.graphs.join import added_rows, join, renumbered
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.sources import Sources
from enfa.plan.step import Program, Step

__all__ = ["joined"]

_MOST = 2**31
Map = np.ndarray | None  # None: every number stays as it is


def _union(tables: Sequence[np.ndarray], what: str, first: int = 0) -> tuple[np.ndarray, list[Map]]:
    """The rows of all tables, each once, and where those of each are. The first ``first`` rows are the same in all."""
    every, maps = tables[0], list[Map]([None])
    for table in tables[1:]:
        if np.array_equal(table, tables[0]) and table.dtype == tables[0].dtype:
            maps.append(None)
            continue
        if not np.array_equal(table[:first], every[:first]):
            raise ValueError(f"Expected '{what}' of all shards to begin alike, got {table[0].tolist()} and {every[0].tolist()}")
        more, place = added_rows(every[first:], table[first:], what)
        every = np.concatenate([every[:first], more])
        maps.append(np.concatenate([np.arange(first), place + first]))
    return every, maps


def _pointers(arrays: Sequence[np.ndarray]) -> np.ndarray:
    shift = np.cumsum([0, *(array[-1] for array in arrays)])
    return np.concatenate([[0], *(array[1:] + more for array, more in zip(arrays, shift))])


def _shifted(arrays: Sequence[np.ndarray], shift: Sequence[int]) -> np.ndarray:
    return np.concatenate([array + array.dtype.type(more) for array, more in zip(arrays, shift)])


def _starts(counts: Sequence[int], what: str) -> list[int]:
    """Where those of each shard begin."""
    ends = np.cumsum([0, *counts])
    if ends[-1] >= _MOST:
        raise ValueError(f"Expected fewer than 2^31 {what} in shards that are open together, got {ends[-1]}: give less memory")
    return [int(end) for end in ends]


class _Kinds:
    """How shards' numbers of marks and of edge kinds translate, and what they stand for."""

    def __init__(self, sources: Sequence[Sources], program: Program) -> None:
        arrays = [s.arrays for s in sources]
        self.marks, self.mark_maps = _union([a["marks"] for a in arrays], "marks", 1)
        self.edge_marks, edge_maps = _union([a["edge_marks"] for a in arrays], "edge_marks", 1)
        self.edge_attr, attr_maps = arrays[0]["edge_attr"], list[Map]([None] * len(arrays))
        if any(step.edges for step in program.steps):
            if self.edge_attr is not None:
                self.edge_attr, attr_maps = _union([a["edge_attr"] for a in arrays], "edge_attr")
        elif self.edge_attr is not None:  # one row stands for all; a shard without edges has none
            self.edge_attr = next((a["edge_attr"] for a in arrays if len(a["edge_attr"])), self.edge_attr)
        if program.dropout and any(found is not None for found in self.mark_maps):
            raise ValueError(
                "Expected the same marks in all shards, because dropout draws by their numbers, got others: use one file"
            )
        self.edge_maps = [
            None if len(a["edge_marks"]) == len(self.edge_marks) and one is None and other is None
            else self._kind_map(a, one, other)
            for a, one, other in zip(arrays, attr_maps, edge_maps)
        ]  # fmt: skip

    def _kind_map(self, arrays: dict[str, np.ndarray], attr: Map, mark: Map) -> np.ndarray:
        """Kinds are (attribute row, mark), as ``expand.edge_tables`` numbers them."""
        marks, rows = len(arrays["edge_marks"]), 1 if arrays["edge_attr"] is None else len(arrays["edge_attr"])
        attr = np.arange(rows) if attr is None else attr
        mark = np.arange(marks) if mark is None else mark
        return (attr[:, None] * len(self.edge_marks) + mark).reshape(-1)

    def of_items(self, step: Step, shard: int, items: np.ndarray) -> np.ndarray:
        """Items of a shard with marks or edge kinds as here."""
        mark = self.mark_maps[shard] if step.op == "start" else None
        kind = self.edge_maps[shard] if step.edges else None
        if mark is None and kind is None:
            return items
        first, second = (items >> 32).astype(np.int32), items.astype(np.int32)
        return packed(first if mark is None else mark[first], second if kind is None else kind[second])


def _table(
    tables: Sequence[KeyTable], own: Sequence[int], item: Sequence[int], step: Step | None = None, kinds: _Kinds | None = None
) -> KeyTable:
    """Keys one shard behind the other; ``own`` and ``item``: where the rows of each begin in what their numbers name."""
    rows = _starts([len(table) for table in tables], "rows")
    ends = _starts([int(table.size[1]) for table in tables], "messages")
    both = KeyTable(0, 0)
    both.size = np.array([rows[-1], ends[-1]])
    both.heads, both.items = np.empty(rows[-1] + 1, np.int64), np.empty(ends[-1], np.int64)
    both.heads[-1] = ends[-1] << 32
    for n, table in enumerate(tables):
        items = table.items[: table.size[1]]
        if step is not None and kinds is not None:
            items = kinds.of_items(step, n, items)
        # heads are (first item, own) and items (row, kind or count), each in its half of 64 bits
        np.add(table.heads[: len(table)], (ends[n] << 32) + own[n], out=both.heads[rows[n] : rows[n + 1]])
        np.add(items, item[n] << 32, out=both.items[ends[n] : ends[n + 1]])
    return both


def _rows(parts: list[list[StepRows]], program: Program, start: list[int], kinds: _Kinds) -> list[StepRows]:
    """Step by step; ``parts`` are emptied on the way, so that no more than one step is there twice."""
    none, found, begins = [0] * len(parts), list[StepRows](), list[list[int]]()
    for number, step in enumerate(program.shared):
        rows = [part[number] for part in parts]
        own, item = (none if read is None else begins[read] for read in (step.own, step.item))
        if step.op == "start":
            own = start
        begin, lists = _starts([len(r.keys) for r in rows], "rows"), None
        if rows[0].lists is not None:
            each = [r.lists for r in rows if r.lists is not None]
            lists = _table(each, none, item)
            item = _starts([len(table) for table in each], "rows")
        shaped = step if step.op == "start" or step.edges else None
        new = StepRows(_table([r.keys for r in rows], own, item, shaped, kinds), lists)
        for name in ("place", "count_row"):
            arrays = [getattr(r, name) for r in rows]
            if arrays[0] is not None:
                setattr(new, name, _shifted(arrays, begin))
        if rows[0].count_ptr is not None:
            new.count_ptr = _pointers([r.count_ptr for r in rows if r.count_ptr is not None])
            new.count = np.concatenate([r.count for r in rows if r.count is not None])
        found.append(new)
        begins.append(begin)
        for part in parts:
            part[number] = StepRows(KeyTable(0, 0))
    return found


def _roots(parts: Sequence[Sources]) -> np.ndarray | None:
    """Of all subgraphs; those of a shard in which the policy found nothing to edit have none."""
    widths = {s.root.shape[1] for s in parts if s.root is not None}
    if not widths:
        return None
    if len(widths) > 1:
        raise ValueError(f"Expected as many roots a subgraph in all shards, got {sorted(widths)}")
    width = widths.pop()
    return np.concatenate([np.full((len(s.sub_size), width), -1) if s.root is None else s.root for s in parts])


def _sources(parts: Sequence[Sources], program: Program, kinds: _Kinds) -> Sources:
    x = _starts([len(s.x) for s in parts], "kinds of nodes")
    graphs = _starts([len(s.node_ptr) - 1 for s in parts], "graphs")
    arrays = {
        "node_ptr": _pointers([s.node_ptr for s in parts]), "sub_ptr": _pointers([s.sub_ptr for s in parts]),
        "sub_size": np.concatenate([s.sub_size for s in parts]), "root": _roots(parts),
        "x": np.concatenate([s.x for s in parts]),  # rows that occur twice cost nothing: batches take those that they read
        "start_feature": _shifted([s.start_feature for s in parts], x),
        "start_graph": _shifted([s.start_graph for s in parts], graphs),
        "categories": np.max([s.arrays["categories"] for s in parts], 0),
        "marks": kinds.marks, "edge_marks": kinds.edge_marks, "edge_attr": kinds.edge_attr,
    }  # fmt: skip
    return Sources(program, **arrays)


def _graphs(parts: Sequence[CompiledDataset]) -> tuple[GraphSet, Edits]:
    """Graphs and edits of shards that are planned batch by batch, or whose last steps share no rows."""
    assert parts[0].graphs is not None
    graphs, edits = parts[0].graphs
    edges = any(step.edges for step in parts[0].program.steps)
    for part in parts[1:]:
        assert part.graphs is not None
        more, of_more = part.graphs
        if edges:
            new = renumbered(more, graphs.x, graphs.edge_attr, graphs.categories)
        else:  # their kinds are not looked at
            new = renumbered(replace(more, edge_attr=None), graphs.x, None, graphs.categories)
            there = graphs.edge_attr is not None and len(graphs.edge_attr) > 0
            new = replace(new, edge_attr=graphs.edge_attr if there else more.edge_attr)
        edits = join_edits(edits, graphs, with_marks(of_more, edits.marks, edits.edge_marks))
        graphs = join(graphs, new)
    return graphs, edits


def joined(parts: Sequence[CompiledDataset], consume: bool = False) -> CompiledDataset:
    """The graphs of all parts, in their order. ``consume``: parts are not used any more, and give their memory on the way."""
    first = parts[0]
    if len(parts) == 1:
        return first
    program, rows, sources = first.program, None, None
    if first.rows is not None:
        of_parts = [part.sources for part in parts if part.sources is not None]
        kinds = _Kinds(of_parts, program)
        sources = _sources(of_parts, program, kinds)
        held = [part.rows if consume else list(part.rows) for part in parts if part.rows is not None]
        rows = _rows(held, program, _starts([len(s.start_feature) for s in of_parts], "kinds of nodes"), kinds)
    y = None if first.y is None else torch.cat([part.y for part in parts if part.y is not None])
    attr = {name: torch.cat([part.graph_attr[name] for part in parts]) for name in first.graph_attr}
    graphs = None if first.graphs is None else _graphs(parts)
    return CompiledDataset(
        first.key, first.policy, program, first.cls, rows=rows, sources=sources, graphs=graphs, y=y, graph_attr=attr
    )
