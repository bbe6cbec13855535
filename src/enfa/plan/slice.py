"""The plan of some graphs, cut out of the distinct rows of many.

Everything that the chosen graphs need is marked, from table L down to table 0, and numbered anew. No hashing, and no
work for rows of other graphs: the cost is that of the plan that comes out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch

from enfa.edits.edits import chosen_subgraphs
from enfa.graphs.graphset import ranges
from enfa.plan.derive import lowered
from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.expand import edge_tables
from enfa.plan.full import tensor
from enfa.plan.intern import KeyTable
from enfa.plan.kernels.slice import add_sums, add_up
from enfa.plan.order import each_once
from enfa.plan.runs import Runs, runs_of
from enfa.plan.spec import Spec
from enfa.plan.table import Context, Layer, Links, Plan, Readout, Sums
from enfa.plan.wanted import Numbers, Wanted, firsts_of, items_of

__all__ = ["Bags", "Slicer", "Sources"]


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


@dataclass
class Bags:
    """The subgraphs of some graphs, and whose base rows they pool."""

    sub: np.ndarray  # int64 [S], numbers in the whole dataset
    sub_graph: np.ndarray  # int64 [S]
    sub_size: np.ndarray  # int64 [S]
    num_pairs: int  # the sum of these
    edited: np.ndarray  # bool [S]: those that pool base rows
    using: np.ndarray  # int64 [graphs]: how many of them each graph has
    nodes: np.ndarray  # int64 [N], of graphs with base rows; numbers in the whole dataset
    node_graph: np.ndarray  # int64 [N]

    @property
    def copies_type(self) -> type[np.signedinteger]:
        """What counts the (subgraph, node) pairs."""
        return np.int32 if self.num_pairs < 2**31 else np.int64


def _sums(table: KeyTable, rows: np.ndarray, wanted: Wanted, counts: type[np.signedinteger] = np.int32) -> Sums:
    ptr, row, count = items_of(table, rows, None, counts)
    return Sums(*map(torch.from_numpy, (ptr, wanted.replace(row), count)))


class Slicer:
    """Cuts plans out of distinct rows. Not thread-safe.

    Keeps one int32 per row of every table as scratch, and one per message where edges have one kind only.
    """

    def __init__(self, rows: DistinctRows, sources: Sources, anew: bool = False) -> None:
        """``anew``: for one plan; others like it are made from other rows."""
        self.rows, self.sources, self._anew = rows, sources, anew
        self.edge_attr, self.edge_mark = edge_tables(sources.edge_attr, sources.edge_marks, sources.spec)
        self._numbers: dict[int, Numbers] = {}
        self._lowered: list[KeyTable] = []
        self._counts: dict[int, type[np.signedinteger]] = {}  # by table
        self._firsts: dict[int, np.ndarray] = {}  # by table, where edges have one kind only
        self._zeros = np.empty(0, np.int32)  # kinds of such edges, for all plans

    @cached_property
    def uses_base(self) -> np.ndarray:
        """bool [G]: graphs of whose bags some subgraph pools base rows."""
        s, graphs = self.sources, len(self.sources.node_ptr) - 1
        of_sub = np.repeat(np.arange(graphs), np.diff(s.sub_ptr))
        return np.bincount(of_sub if s.keeps is None else of_sub[~s.keeps], minlength=graphs) > 0

    @cached_property
    def runs(self) -> Runs:
        """Of all graphs, found when they are first asked for."""
        return runs_of(self.rows, self.sources.node_ptr, self.sources.sub_ptr, self.uses_base)

    def wanted(self, table: KeyTable) -> Wanted:
        """No row of a table so far."""
        numbers = self._numbers.get(id(table))
        if numbers is None or len(numbers.number) != len(table):
            numbers = self._numbers[id(table)] = Numbers(len(table))
        return Wanted(numbers)

    def deltas(self, i: int) -> KeyTable:
        """The deltas over table i, counted from 1. Those below the last are made at once, when they are first asked for."""
        layers = self.rows.layers
        if not self._lowered:
            self._lowered = [self.rows.deltas]
            deltas = self.rows.deltas
            sums = Sums(tensor(deltas.item_ptr), tensor(deltas.a), tensor(deltas.b))
            for layer, before in zip(layers[:0:-1], layers[-2::-1]):
                own = layer.rows.own if layer.mix is None else layer.rows.own[layer.mix.own]
                sums = lowered(sums, torch.from_numpy(own), len(before.table))
                ptr, row, count = sums.ptr.numpy(), sums.row.numpy(), sums.count.numpy()
                self._lowered.append(KeyTable.from_arrays(np.zeros(len(ptr) - 1, np.int32), ptr, row, count))
        return self._lowered[len(layers) - i]

    def counts(self, deltas: KeyTable) -> type[np.signedinteger]:
        """What holds the counts of all deltas: the same for every plan, because plans differ in nothing but sizes."""
        if self._anew:
            return np.int32
        if id(deltas) not in self._counts:
            # a byte, nearly always: a sixth less of all that batches hold
            self._counts[id(deltas)] = np.int8 if np.abs(deltas.b).max(initial=0) < 2**7 else np.int32
        return self._counts[id(deltas)]

    def plan(
        self, graphs: np.ndarray, subs: np.ndarray | None = None, tables: bool = False, runs: bool = False
    ) -> Plan:
        """The plan of the chosen graphs, in the given order.

        ``tables``: with the readouts of all tables, which are then slices too (kept in memory: up to as much again for
        each table as the deltas) instead of derived for every batch.

        ``subs``, if given, restricts their bags to some subgraphs (numbers in the whole dataset, graph by graph in the
        order of ``graphs``), such as a draw of :class:`~enfa.Subsample`.

        ``runs``: number the rows of runs first, as :class:`~enfa.plan.cut.Cutter` does. Whole bags without a context only.
        """
        spec = self.sources.spec
        if subs is not None and (spec.context is not None or spec.output == "node"):
            raise ValueError(
                f"Expected whole bags, because {'the context' if spec.context else 'the output'} of a node is a sum "
                f"over its bag, which a draw of subgraphs changes; plan the draw itself (a Subsample policy does)"
            )
        return self._plan(np.asarray(graphs, np.int64), subs, tables and spec.output == "graph", runs)

    def bags(self, graphs: np.ndarray, subs: np.ndarray | None = None) -> Bags:
        s, spec = self.sources, self.sources.spec
        sub, counts = chosen_subgraphs(s.sub_ptr, graphs, subs)
        sub_graph = np.repeat(np.arange(len(graphs)), counts)
        edited = np.ones(len(sub), bool) if s.keeps is None else ~s.keeps[sub]
        using = counts if s.keeps is None else np.bincount(sub_graph[edited], minlength=len(graphs))
        sub_size = s.sub_size[sub]
        # contexts are those of all nodes; roots alone need no base pool
        with_base = np.arange(len(graphs)) if spec.context is not None else np.flatnonzero(using * (not spec.pruned))
        first_node = s.node_ptr[graphs[with_base]]
        nodes = s.node_ptr[graphs[with_base] + 1] - first_node
        of_nodes = ranges(first_node, nodes), np.repeat(with_base, nodes)
        return Bags(sub, sub_graph, sub_size, int(sub_size.sum()), edited, using, *of_nodes)

    def _plan(self, graphs: np.ndarray, subs: np.ndarray | None, all_tables: bool, runs: bool) -> Plan:
        spec, tables, bags = self.sources.spec, self.rows, self.bags(graphs, subs)
        deltas = self.wanted(tables.deltas)
        wanted = self.wanted(tables.layers[-1].table)
        if runs:
            alone = graphs[self.runs.mates.alone(graphs)]
            deltas.enter(self.runs.deltas, alone)
            wanted.enter(self.runs.tables[-1], alone)
        sub_delta = deltas.add(tables.sub_delta[bags.sub])
        delta_ptr, delta_row, delta_count = items_of(tables.deltas, deltas.rows, None, self.counts(tables.deltas))
        base_row = wanted.add(tables.base_row[bags.nodes])
        wanted.replace(delta_row)
        off = self._read_off(graphs, bags.sub, bags.sub_graph, wanted)
        # how many (subgraph, node) pairs a row of table L stands for
        copies = np.zeros(wanted.count, bags.copies_type)
        add_up(base_row, bags.using[bags.node_graph], copies)
        add_sums(delta_ptr, delta_row, delta_count, np.bincount(sub_delta, minlength=deltas.count), copies)

        layers: list[Layer] = []
        below: list[tuple[np.ndarray, Sums]] = []
        base = base_row
        for i in reversed(range(spec.num_layers)):
            before = self.wanted(tables.layers[i - 1].table if i else tables.start)
            if runs:
                before.enter(self.runs.tables[i], alone)
            layer, base, copies = self._layer(tables.layers[i], wanted, before, base, copies)
            layers.insert(0, layer)
            wanted = before
            if all_tables and i:
                below.insert(0, (base, _sums(self.deltas(i), deltas.rows, before, self.counts(self.deltas(i)))))
        delta = Sums(*map(torch.from_numpy, (delta_ptr, delta_row, delta_count)))
        plan = self.assembled(graphs, bags, wanted.rows, layers, torch.from_numpy(base_row), delta, sub_delta, off)
        if all_tables:
            of_tables = [replace(plan.readout, base_row=torch.from_numpy(rows), delta=delta) for rows, delta in below]
            plan.cache["readouts"] = [*of_tables, plan.readout]
        return plan

    def assembled(
        self,
        graphs: np.ndarray,
        bags: Bags,
        start: np.ndarray,
        layers: list[Layer],
        base_row: torch.Tensor,
        delta: Sums,
        sub_delta: np.ndarray,
        off: dict[str, Any],
    ) -> Plan:
        """A plan from its layers and pools: the rest of it. ``start`` are the rows wanted of table 0."""
        s, tables = self.sources, self.rows
        own = tables.start.heads[start].astype(np.int32)
        _, mark, degree = items_of(tables.start, start)
        of_graph = None
        if s.spec.share == "graph":
            position = np.full(len(s.node_ptr), -1, np.int64)
            position[graphs] = np.arange(len(graphs))
            of_graph = tensor(position[s.start_graph[own]])
        plan = Plan(
            kind="distinct",
            spec=s.spec,
            num_graphs=len(graphs),
            x=tensor(s.x[s.start_feature[own]]),
            feature=tensor(np.arange(len(start))),
            mark=tensor(mark),
            marks=tensor(s.marks),
            degree=tensor(degree) if s.spec.degrees else None,
            graph=of_graph,
            edge_attr=None if self.edge_attr is None else tensor(self.edge_attr),
            edge_mark=tensor(self.edge_mark),
            layers=layers,
            readout=Readout(
                base_row=base_row,
                node_graph=tensor(bags.node_graph),
                delta=delta,
                sub_delta=tensor(sub_delta),
                sub_graph=tensor(bags.sub_graph),
                sub_size=tensor(bags.sub_size),
                **off,
                # for all batches or for none: plans of one dataset differ in nothing but sizes
                sub_base=None if s.keeps is None else tensor(np.where(bags.edited, bags.sub_graph, len(graphs))),
            ),
            limits=s.limits,
            num_pairs=bags.num_pairs,
            graph_ids=tensor(graphs),
        )
        plan.cache["feature"] = each_once(len(start))  # what ``derive.readers`` would find
        return plan

    def _read_off(
        self, graphs: np.ndarray, sub: np.ndarray, sub_graph: np.ndarray, wanted: Wanted
    ) -> dict[str, Any]:
        """The parts of the readout that ``spec.output`` asks for."""
        s, tables = self.sources, self.rows
        if s.spec.output == "graph":
            return {}
        nodes = s.node_ptr[graphs + 1] - s.node_ptr[graphs]
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
            return {"nodes": _sums(tables.nodes, tables.node_sum[ranges(s.node_ptr[graphs], nodes)], wanted)}
        return {}

    def _links(self, table: KeyTable, wanted: Wanted, before: Wanted) -> tuple[Links, np.ndarray]:
        """The links of some rows; also their own rows as an array."""
        self_row, ptr = before.add_owns(table, wanted.rows)
        if len(self.edge_mark) > 1:
            _, row, kind = items_of(table, wanted.rows, ptr)
        else:  # all of kind 0
            firsts = self._firsts.get(id(table))
            if firsts is None or len(firsts) != table.size[1]:
                firsts = self._firsts[id(table)] = table.a
            row = firsts_of(table, firsts, wanted.rows, ptr)
            if len(self._zeros) < len(row):
                self._zeros = np.zeros(2 * len(row), np.int32)
            kind = self._zeros[: len(row)]
        # a row sent is that of a node, which has one in the next table too: nearly all are wanted by now
        return Links(*map(torch.from_numpy, (self_row, ptr, before.replace(row), kind))), self_row

    def _layer(
        self, layer: DistinctLayer, wanted: Wanted, before: Wanted, base: np.ndarray, copies: np.ndarray
    ) -> tuple[Layer, np.ndarray, np.ndarray]:
        """One layer from the rows wanted of its table; also the base rows and copies of the table before."""
        if layer.mix is None:
            links, self_row = self._links(layer.rows, wanted, before)
            result = Layer(links, torch.from_numpy(copies))
        else:
            assert layer.context is not None
            conv = self.wanted(layer.rows)
            source, ptr = conv.add_owns(layer.mix, wanted.rows)
            encoded = self.wanted(layer.context if layer.encoder is None else layer.encoder)
            context_row = encoded.replace(items_of(layer.mix, wanted.rows, ptr)[1])
            of_nodes = np.bincount(context_row[base], minlength=encoded.count)
            encoder, contexts = None, encoded
            if layer.encoder is not None:
                contexts = self.wanted(layer.context)
                encoder, _ = self._links(layer.encoder, encoded, contexts)
            sums = _sums(layer.context, contexts.rows, before if self.sources.spec.context == "input" else conv)
            context = Context(sums, encoder, tensor(of_nodes))
            conv_copies = np.zeros(conv.count, copies.dtype)
            add_up(source, copies, conv_copies)
            links, self_row = self._links(layer.rows, conv, before)
            result = Layer(links, torch.from_numpy(conv_copies), tensor(source), context, tensor(context_row))
            base, copies = source[base], conv_copies
        before_copies = np.zeros(before.count, copies.dtype)
        add_up(self_row, copies, before_copies)
        return result, self_row[base], before_copies
