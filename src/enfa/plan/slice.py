"""The plan of some graphs, cut out of the distinct rows of many.

Everything that the chosen graphs need is marked, from table L down to table 0, and numbered anew. No hashing, and no
work for rows of other graphs: the cost is that of the plan that comes out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from enfa.edits.edits import chosen_subgraphs
from enfa.graphs.graphset import ranges
from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.expand import edge_tables
from enfa.plan.full import tensor
from enfa.plan.intern import KeyTable
from enfa.plan.kernels.slice import collect, forget, lengths, pull, pull_links
from enfa.plan.spec import Spec
from enfa.plan.table import Context, Layer, Links, Plan, Readout, Sums

__all__ = ["Slicer", "Sources"]


@dataclass
class Sources:
    """What a plan needs beside the rows: where graphs begin, and the features that kinds stand for."""

    spec: Spec
    node_ptr: np.ndarray  # int64 [G+1]
    sub_ptr: np.ndarray  # int64 [G+1]
    sub_size: np.ndarray  # int64 [S]
    start_feature: np.ndarray  # int64 [start kinds], row of x
    start_graph: np.ndarray  # int64 [start kinds]
    x: np.ndarray
    marks: np.ndarray
    edge_attr: np.ndarray | None  # distinct rows; None where the model reads none
    edge_marks: np.ndarray
    limits: tuple[tuple[int, ...], tuple[int, ...]]
    keeps: np.ndarray | None = None  # bool [S]: subgraphs whose pool is their delta alone
    root: np.ndarray | None = None  # int64 [S, roots], counted within each graph; only for spec.output "root"


class _Wanted:
    """The rows wanted of one table so far, and their new numbers."""

    def __init__(self, number: np.ndarray) -> None:
        self.number, self.count = number, 0
        self.found = np.empty(1024, np.int64)

    def reserve(self, more: int) -> None:
        """Make room for so many more rows, as far as the table has them."""
        room = min(self.count + more, len(self.number))
        if room > len(self.found):
            found = np.empty(max(room, 2 * self.count), np.int64)
            found[: self.count] = self.found[: self.count]
            self.found = found

    def add(self, ids: np.ndarray) -> np.ndarray:
        """Mark rows as wanted; return their new numbers."""
        self.reserve(len(ids))
        result = np.empty(len(ids), np.int64)
        self.count = collect(ids, self.number, self.found, self.count, result)
        return result

    @property
    def rows(self) -> np.ndarray:
        return self.found[: self.count]


def _items(table: KeyTable, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    ptr = np.empty(len(rows) + 1, np.int64)
    lengths(rows, table.ptr, ptr)
    a, b = np.empty(ptr[-1], np.int64), np.empty(ptr[-1], np.int64)
    pull(rows, table.ptr, table.items, ptr, a, b)
    return ptr, a, b


class Slicer:
    """Cuts plans out of distinct rows. Keeps one int32 per row of every table as scratch; not thread-safe."""

    def __init__(self, rows: DistinctRows, sources: Sources) -> None:
        self.rows, self.sources = rows, sources
        self.edge_attr, self.edge_mark = edge_tables(sources.edge_attr, sources.edge_marks, sources.spec)
        self._numbers: dict[int, np.ndarray] = {}
        self._open: list[_Wanted] = []

    def _wanted(self, table: KeyTable) -> _Wanted:
        number = self._numbers.get(id(table))
        if number is None or len(number) != len(table):
            number = self._numbers[id(table)] = np.full(len(table), -1, np.int32)
        self._open.append(_Wanted(number))
        return self._open[-1]

    def plan(self, graphs: np.ndarray, subs: np.ndarray | None = None) -> Plan:
        """The plan of the chosen graphs, in the given order.

        ``subs``, if given, restricts their bags to some subgraphs (numbers in the whole dataset, graph by graph in the
        order of ``graphs``), such as a draw of :class:`~enfa.Subsample`.
        """
        spec = self.sources.spec
        if subs is not None and (spec.context is not None or spec.output == "node"):
            raise ValueError(
                f"Expected whole bags, because {'the context' if spec.context else 'the output'} of a node is a sum "
                f"over its bag, which a draw of subgraphs changes; plan the draw itself (a Subsample policy does)"
            )
        try:
            return self._plan(np.asarray(graphs, np.int64), subs)
        finally:
            for wanted in self._open:
                forget(wanted.found, wanted.count, wanted.number)
            self._open.clear()

    def _plan(self, graphs: np.ndarray, subs_wanted: np.ndarray | None) -> Plan:
        s, spec, tables = self.sources, self.sources.spec, self.rows
        sub, subs = chosen_subgraphs(s.sub_ptr, graphs, subs_wanted)
        sub_graph = np.repeat(np.arange(len(graphs)), subs)
        edited = np.ones(len(sub), bool) if s.keeps is None else ~s.keeps[sub]
        using = np.bincount(sub_graph[edited], minlength=len(graphs))  # subgraphs that pool base rows
        # contexts are those of all nodes; roots alone need no base pool
        with_base = np.arange(len(graphs)) if spec.context is not None else np.flatnonzero(using * (not spec.pruned))
        nodes = np.diff(s.node_ptr)[graphs[with_base]]
        node_graph = np.repeat(with_base, nodes)

        deltas = self._wanted(tables.deltas)
        sub_delta = deltas.add(tables.sub_delta[sub])
        delta_ptr, delta_row, delta_count = _items(tables.deltas, deltas.rows)
        wanted = self._wanted(tables.layers[-1].table)
        base_row = wanted.add(tables.base_row[ranges(s.node_ptr[graphs[with_base]], nodes)])
        delta_row = wanted.add(delta_row)
        off = self._read_off(graphs, sub, sub_graph, wanted)
        # how many (subgraph, node) pairs a row of table L stands for
        copies = np.zeros(wanted.count, np.int64)
        np.add.at(copies, base_row, using[node_graph])
        weight = np.bincount(sub_delta, minlength=deltas.count)
        np.add.at(copies, delta_row, delta_count * np.repeat(weight, np.diff(delta_ptr)))

        layers: list[Layer] = []
        base = base_row
        for i in reversed(range(spec.num_layers)):
            before = self._wanted(tables.layers[i - 1].table if i else tables.start)
            layer, base, copies = self._layer(tables.layers[i], wanted, before, base, copies)
            layers.insert(0, layer)
            wanted = before

        own = tables.start.own[wanted.rows]
        _, mark, degree = _items(tables.start, wanted.rows)
        position = np.full(len(s.node_ptr), -1, np.int64)
        position[graphs] = np.arange(len(graphs))
        return Plan(
            kind="distinct",
            spec=spec,
            num_graphs=len(graphs),
            x=tensor(s.x[s.start_feature[own]]),
            feature=tensor(np.arange(wanted.count)),
            mark=tensor(mark),
            marks=tensor(s.marks),
            degree=tensor(degree) if spec.degrees else None,
            graph=tensor(position[s.start_graph[own]]) if spec.share == "graph" else None,
            edge_attr=None if self.edge_attr is None else tensor(self.edge_attr),
            edge_mark=tensor(self.edge_mark),
            layers=layers,
            readout=Readout(
                base_row=tensor(base_row),
                node_graph=tensor(node_graph),
                delta=Sums(tensor(delta_ptr), tensor(delta_row), tensor(delta_count)),
                sub_delta=tensor(sub_delta),
                sub_graph=tensor(sub_graph),
                sub_size=tensor(s.sub_size[sub]),
                **off,
                sub_base=None if edited.all() else tensor(np.where(edited, sub_graph, len(graphs))),
            ),
            limits=s.limits,
            num_pairs=int(s.sub_size[sub].sum()),
            graph_ids=tensor(graphs),
        )

    def _read_off(
        self, graphs: np.ndarray, sub: np.ndarray, sub_graph: np.ndarray, wanted: _Wanted
    ) -> dict[str, Any]:
        """The parts of the readout that ``spec.output`` asks for."""
        s, tables = self.sources, self.rows
        nodes = np.diff(s.node_ptr)[graphs]
        if s.spec.output == "root":
            assert s.root is not None and tables.sub_root is not None
            rooted = s.root[sub][:, 0] >= 0
            sub, first = sub[rooted], (np.cumsum(nodes) - nodes)[sub_graph[rooted], None]
            roots = tables.sub_root[sub]
            rows = wanted.add(roots.reshape(-1)).reshape(roots.shape)
            return {"root_row": tensor(rows), "root_node": tensor(s.root[sub] + first)}
        if s.spec.output == "node":
            assert tables.nodes is not None and tables.node_sum is not None
            # one entry per node, not per distinct one: what follows is as long anyway
            ptr, row, count = _items(tables.nodes, tables.node_sum[ranges(s.node_ptr[graphs], nodes)])
            return {"nodes": Sums(tensor(ptr), tensor(wanted.add(row)), tensor(count))}
        return {}

    def _layer(
        self, layer: DistinctLayer, wanted: _Wanted, before: _Wanted, base: np.ndarray, copies: np.ndarray
    ) -> tuple[Layer, np.ndarray, np.ndarray]:
        """One layer from the rows wanted of its table; also the base rows and copies of the table before."""
        if layer.mix is None:
            links = self._links(layer.rows, wanted, before)
            result = Layer(links, tensor(copies))
        else:
            assert layer.context is not None
            conv = self._wanted(layer.rows)
            source = conv.add(layer.mix.own[wanted.rows])
            encoded = self._wanted(layer.context if layer.encoder is None else layer.encoder)
            context_row = encoded.add(_items(layer.mix, wanted.rows)[1])
            of_nodes = np.bincount(context_row[base], minlength=encoded.count)
            encoder, contexts = None, encoded
            if layer.encoder is not None:
                contexts = self._wanted(layer.context)
                encoder = self._links(layer.encoder, encoded, contexts)
            ptr, row, count = _items(layer.context, contexts.rows)
            row = (before if self.sources.spec.context == "input" else conv).add(row)
            context = Context(Sums(tensor(ptr), tensor(row), tensor(count)), encoder, tensor(of_nodes))
            conv_copies = np.zeros(conv.count, np.int64)
            np.add.at(conv_copies, source, copies)
            links = self._links(layer.rows, conv, before)
            result = Layer(links, tensor(conv_copies), tensor(source), context, tensor(context_row))
            base, copies = source[base], conv_copies
        own = links.self_row.numpy()
        before_copies = np.zeros(before.count, np.int64)
        np.add.at(before_copies, own, copies)
        return result, own[base], before_copies

    def _links(self, table: KeyTable, wanted: _Wanted, before: _Wanted) -> Links:
        rows = wanted.rows
        own, ptr = np.empty(len(rows), np.int64), np.empty(len(rows) + 1, np.int64)
        lengths(rows, table.ptr, ptr)
        row, kind = np.empty(ptr[-1], np.int64), np.empty(ptr[-1], np.int64)
        before.reserve(len(rows) + len(row))
        before.count = pull_links(
            rows, table.owns, table.ptr, table.items, before.number, before.found, before.count, own, ptr, row, kind
        )
        return Links(tensor(own), tensor(ptr), tensor(row), tensor(kind))

