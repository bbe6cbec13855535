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
from enfa.plan.arrays import tensor
from enfa.plan.derive import lowered
from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.expand import edge_tables
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
    base: np.ndarray  # int32 [B], the graphs' base pools one behind the other; rows in the whole dataset
    base_graph: np.ndarray  # int64 [B]
    num_nodes: int  # of the graphs
    nodes: np.ndarray  # int64 [N], numbers in the whole dataset; none where there are no contexts

    @property
    def copies_type(self) -> type[np.signedinteger]:
        """What counts the (subgraph, node) pairs."""
        return np.int32 if self.num_pairs < 2**31 else np.int64


@dataclass
class _Pool:
    """What subgraphs pool of one table."""

    base: np.ndarray  # int32 [B]
    graph: np.ndarray  # int64 [B]
    delta: tuple[np.ndarray, np.ndarray, np.ndarray]  # ptr, row, count

    def arrays(self) -> dict[str, Any]:
        """By their names in a :class:`~enfa.plan.table.Readout`."""
        delta = Sums(*map(torch.from_numpy, self.delta))
        return {"base_row": torch.from_numpy(self.base), "base_graph": tensor(self.graph), "delta": delta}


def _chosen(ptr: np.ndarray, keep: np.ndarray) -> np.ndarray:
    """Where lists begin once only some of their entries are kept."""
    return np.concatenate([[0], np.cumsum(keep)])[ptr].astype(np.int32)


def _lists(
    table: KeyTable, rows: np.ndarray, wanted: Wanted, counts: type[np.signedinteger] = np.int32
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``(ptr, row, count)``: the items of some keys, whose rows are marked as wanted."""
    ptr, row, count = items_of(table, rows, None, counts)
    return ptr, wanted.replace(row), count


def _sums(table: KeyTable, rows: np.ndarray, wanted: Wanted, counts: type[np.signedinteger] = np.int32) -> Sums:
    return Sums(*map(torch.from_numpy, _lists(table, rows, wanted, counts)))


class Slicer:
    """Cuts plans out of distinct rows. Not thread-safe.

    Keeps one int32 per row of every table as scratch, and one per message where edges have one kind only.
    """

    def __init__(self, rows: DistinctRows, sources: Sources, anew: bool = False) -> None:
        """``anew``: for one plan; others like it are made from other rows."""
        self.rows, self.sources, self._anew = rows, sources, anew
        self.edge_attr, self.edge_mark = edge_tables(sources.edge_attr, sources.edge_marks, sources.spec.edge_attr)
        self._numbers: dict[int, Numbers] = {}
        self._lowered: list[KeyTable] = []
        self._counts: dict[int, type[np.signedinteger]] = {}  # by table
        self._firsts: dict[int, np.ndarray] = {}  # by table, where edges have one kind only
        self._zeros = np.empty(0, np.int32)  # kinds of such edges, for all plans

    @cached_property
    def runs(self) -> Runs:
        """Of all graphs, found when they are first asked for."""
        return runs_of(self.rows, self.sources.sub_ptr)

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
        s, rows = self.sources, self.rows
        sub, counts = chosen_subgraphs(s.sub_ptr, graphs, subs)
        sub_graph = np.repeat(np.arange(len(graphs)), counts)
        edited = np.ones(len(sub), bool) if s.keeps is None else ~s.keeps[sub]
        using = counts if s.keeps is None else np.bincount(sub_graph[edited], minlength=len(graphs))
        sub_size = s.sub_size[sub]
        pooled = rows.base_ptr[graphs + 1] - rows.base_ptr[graphs]
        base = rows.base_row[ranges(rows.base_ptr[graphs], pooled)], np.repeat(np.arange(len(graphs)), pooled)
        count = s.node_ptr[graphs + 1] - s.node_ptr[graphs]
        nodes = ranges(s.node_ptr[graphs], count) if rows.node_context else count[:0]
        return Bags(sub, sub_graph, sub_size, int(sub_size.sum()), edited, using, *base, int(count.sum()), nodes)

    def _plan(self, graphs: np.ndarray, subs: np.ndarray | None, all_tables: bool, runs: bool) -> Plan:
        spec, tables, bags = self.sources.spec, self.rows, self.bags(graphs, subs)
        deltas = self.wanted(tables.deltas)
        wanted = self.wanted(tables.layers[-1].table)
        if runs:
            alone = graphs[self.runs.mates.alone(graphs)]
            deltas.enter(self.runs.deltas.begin[alone], self.runs.deltas.end[alone])
            wanted.enter(self.runs.tables[-1].begin[alone], self.runs.tables[-1].end[alone])
        sub_delta = deltas.add(tables.sub_delta[bags.sub])
        # base rows are numbered first: in this order rows of one graph lie side by side
        base_row = wanted.add(bags.base)
        pool = _Pool(base_row, bags.base_graph, _lists(tables.deltas, deltas.rows, wanted, self.counts(tables.deltas)))
        # how many (subgraph, node) pairs a row of table L stands for
        copies = np.zeros(wanted.count, bags.copies_type)
        add_up(pool.base, bags.using[bags.base_graph], copies)
        add_sums(*pool.delta, np.bincount(sub_delta, minlength=deltas.count), copies)
        if subs is not None:  # a part of a bag may have less than the bag: what counts nothing is left out
            counted, copies = wanted.rows[copies > 0], copies[copies > 0]
            wanted = self.wanted(tables.layers[-1].table)
            wanted.add(counted)
            pool = self._pool_of_known(tables.deltas, deltas.rows, bags.base, bags.base_graph, wanted)
        off = self._read_off(graphs, bags.sub, bags.sub_graph, wanted)
        if wanted.count > len(copies):  # roots alone are read, and nothing is counted
            copies = np.zeros(wanted.count, bags.copies_type)

        layers: list[Layer] = []
        pools, base, drawn = [pool], pool.base, bags.base
        for i in reversed(range(spec.num_layers)):
            before = self.wanted(tables.layers[i - 1].table if i else tables.start)
            if runs:
                before.enter(self.runs.tables[i].begin[alone], self.runs.tables[i].end[alone])
            contexts = tables.node_context[i][bags.nodes] if tables.node_context else None
            layer, base, copies = self._layer(tables.layers[i], wanted, before, contexts, base, copies)
            layers.insert(0, layer)
            wanted = before
            if all_tables and i:
                if subs is None:
                    lower = self.deltas(i)
                    pools.insert(0, _Pool(base, pool.graph, _lists(lower, deltas.rows, before, self.counts(lower))))
                else:  # other base rows count in this table than in the last
                    drawn = tables.layers[i].rows.own_of(drawn)
                    pools.insert(0, self._pool_of_known(self.deltas(i), deltas.rows, drawn, bags.base_graph, before))
        plan = self.assembled(graphs, bags, wanted.rows, layers, pool.arrays(), sub_delta, off)
        if all_tables:
            of_tables = [replace(plan.readout, **pool.arrays()) for pool in pools[:-1]]
            plan.cache["readouts"] = [*of_tables, plan.readout]
        return plan

    def _pool_of_known(
        self, table: KeyTable, lists: np.ndarray, base: np.ndarray, graph: np.ndarray, wanted: Wanted
    ) -> _Pool:
        """Base rows and deltas without the rows that are not wanted."""
        ptr, row, count = items_of(table, lists, None, self.counts(table))
        base, row = wanted.known(base), wanted.known(row)
        there, kept = base >= 0, row >= 0
        return _Pool(base[there], graph[there], (_chosen(ptr, kept), row[kept], count[kept]))

    def assembled(
        self,
        graphs: np.ndarray,
        bags: Bags,
        start: np.ndarray,
        layers: list[Layer],
        pool: dict[str, Any],
        sub_delta: np.ndarray,
        off: dict[str, Any],
    ) -> Plan:
        """A plan from its layers and pools: the rest of it. ``start``: rows wanted of table 0; ``pool``: ``_Pool.arrays``."""
        s, tables = self.sources, self.rows
        own = tables.start.own_of(start)
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
                **pool,
                sub_delta=tensor(sub_delta),
                sub_graph=tensor(bags.sub_graph),
                sub_size=tensor(bags.sub_size),
                **off,
                # for all batches or for none: plans of one dataset differ in nothing but sizes
                sub_base=None if s.keeps is None else tensor(np.where(bags.edited, bags.sub_graph, len(graphs))),
            ),
            limits=s.limits,
            num_pairs=bags.num_pairs,
            num_nodes=bags.num_nodes,
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
        self,
        layer: DistinctLayer,
        wanted: Wanted,
        before: Wanted,
        of_nodes: np.ndarray | None,
        base: np.ndarray,
        copies: np.ndarray,
    ) -> tuple[Layer, np.ndarray, np.ndarray]:
        """One layer from the rows wanted of its table, and the encoded contexts ``of_nodes`` of the graphs.

        Also the base rows and copies of the table before.
        """
        if layer.mix is None:
            links, self_row = self._links(layer.rows, wanted, before)
            result = Layer(links, torch.from_numpy(copies))
        else:
            assert layer.context is not None and of_nodes is not None
            conv = self.wanted(layer.rows)
            source, ptr = conv.add_owns(layer.mix, wanted.rows)
            encoded = self.wanted(layer.context if layer.encoder is None else layer.encoder)
            context_row = encoded.replace(items_of(layer.mix, wanted.rows, ptr)[1])
            nodes = np.bincount(encoded.add(of_nodes), minlength=encoded.count)
            encoder, contexts = None, encoded
            if layer.encoder is not None:
                contexts = self.wanted(layer.context)
                encoder, _ = self._links(layer.encoder, encoded, contexts)
            sums = _sums(layer.context, contexts.rows, before if self.sources.spec.context == "input" else conv)
            context = Context(sums, encoder, tensor(nodes))
            conv_copies = np.zeros(conv.count, copies.dtype)
            add_up(source, copies, conv_copies)
            links, self_row = self._links(layer.rows, conv, before)
            result = Layer(links, torch.from_numpy(conv_copies), tensor(source), context, tensor(context_row))
            base, copies = source[base], conv_copies
        before_copies = np.zeros(before.count, copies.dtype)
        add_up(self_row, copies, before_copies)
        return result, self_row[base], before_copies
