"""Which row each (subgraph, node) pair has in a table, written down without writing all pairs down."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.rows import hubs
from enfa.plan.rows._groups import Bags, Edges
from enfa.plan.rows._pairs import deltas, join_pairs, list_all, pass_between, place_all, root_rows

__all__ = ["PairRows"]


class PairRows(NamedTuple):
    """``base[v]``, unless subgraph s lists another row for v, or -1: it lacks the node.

    A ``complete`` subgraph lists all of its nodes and has no others.
    """

    base: np.ndarray  # int32 [N]
    ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int32
    row: np.ndarray  # int32
    complete: np.ndarray  # bool [S]

    @staticmethod
    def with_room(base: np.ndarray, room: int, complete: np.ndarray) -> PairRows:
        """For so many rows, to be written by a kernel."""
        ptr, node, row = np.zeros(len(complete) + 1, np.int64), np.empty(room, np.int32), np.empty(room, np.int32)
        return PairRows(base, ptr, node, row, complete)

    def grown(self, more: int) -> PairRows:
        """With room for so many more."""
        node, row = (np.concatenate([old, np.empty(more, np.int32)]) for old in (self.node, self.row))
        return self._replace(node=node, row=row)

    def cut(self) -> PairRows:
        """Without the room that is left."""
        return self._replace(node=self.node[: self.ptr[-1]], row=self.row[: self.ptr[-1]])

    def unlisted(self, graphs: GraphSet, edits: Edits) -> np.ndarray:
        """int64 [N]: in how many subgraphs a node has its base row."""
        bag = np.bincount(edits.graph[~self.complete], minlength=graphs.num_graphs)[graphs.graph]
        listed = self.node
        if self.complete.any():
            listed = listed[np.repeat(~self.complete, np.diff(self.ptr))]
        return bag - np.bincount(listed, minlength=graphs.num_nodes)

    def across(self, graphs: GraphSet, edits: Edits, own: np.ndarray, table: KeyTable) -> np.ndarray:
        """For every node the multiset of its rows over the bag, looked up in ``table`` with ``own[v]``."""
        present, rest = self.row >= 0, self.unlisted(graphs, edits)
        pairs, count = np.unique(packed(self.node[present], self.row[present]), return_counts=True)
        node = np.concatenate([pairs >> 32, np.flatnonzero(rest)])
        row = np.concatenate([pairs & 0xFFFFFFFF, self.base[rest > 0]])
        count = np.concatenate([count, rest[rest > 0]])
        if self.complete.any():  # these list base rows, too
            both, where = np.unique(packed(node, row), return_inverse=True)
            node, row, count = both >> 32, both & 0xFFFFFFFF, np.bincount(where, count, len(both)).astype(np.int64)
        order = np.argsort(node, kind="stable")
        ptr = np.concatenate([[0], np.cumsum(np.bincount(node, minlength=graphs.num_nodes))])
        return table.add(own, ptr, packed(row, count)[order])

    def deltas(self, base: np.ndarray, table: KeyTable) -> np.ndarray:
        """int32 [S]: what each subgraph's pool has more than ``base``, of a complete one all of it, looked up in ``table``.

        ``base`` are the base rows that the pools of graphs have, -1 for others.
        """
        subs, done = len(self.ptr) - 1, 0
        result, items = np.empty(subs, np.int32), np.empty(2 * int(np.diff(self.ptr).max(initial=0)), np.int64)
        while done < subs:
            done = deltas(done, self._replace(base=base), items, table.arrays, result)
            if done < subs:
                table.reserve(2, 2 * int(self.ptr[done + 1] - self.ptr[done]))
        return result

    def at(self, nodes: np.ndarray) -> np.ndarray:
        """int32: the rows of ``nodes[s]`` in every subgraph s; -1 where that is -1."""
        found = np.empty(nodes.shape, np.int32)
        root_rows(nodes, self, found)
        return found

    def completed(self, graphs: GraphSet, edits: Edits) -> PairRows:
        """The same with all nodes of all subgraphs listed, and no base rows."""
        if self.complete.all():
            return self
        nodes = np.diff(graphs.node_ptr)[edits.graph]
        room = int(np.where(self.complete, np.diff(self.ptr), nodes).sum())
        if room > hubs.STORED:
            raise ValueError(
                f"Expected at most {hubs.STORED} (subgraph, node) pairs to write out (enfa.plan.rows.hubs.STORED), got {room}: "
                f"{8 * room / 2**30:.1f} GiB a step, as what is spread from subgraphs or passed along them differs in each. "
                f"Draw fewer subgraphs (Subsample) or smaller ones (EgoNets), or raise the limit where there is memory"
            )
        none = np.full_like(self.base, -1)  # in the table to come, numbers of this one mean something else
        new = PairRows.with_room(none, room, np.ones_like(self.complete))
        list_all(graphs.node_ptr[edits.graph], nodes, self._replace(base=self.base.copy()), new)
        return new.cut()

    def placed(self, graphs: GraphSet, edits: Edits) -> np.ndarray:
        """int32: the row of every pair, by subgraph and then by node."""
        nodes = np.diff(graphs.node_ptr)[edits.graph]
        found = np.empty(int(edits.sizes(graphs).sum()), np.int32)
        place_all(graphs.node_ptr[edits.graph], nodes, self.complete, self.base, self.ptr, self.node, self.row, found)
        return found

    def of_nodes(self, rows: np.ndarray) -> PairRows:
        """Every pair has its node's row. ``self`` says which pairs there are."""
        listed = np.where(self.row < 0, -1, rows[self.node]).astype(np.int32)
        keep = np.repeat(self.complete, np.diff(self.ptr)) | (listed < 0)
        ptr = np.concatenate([[0], np.cumsum(keep)])[self.ptr]
        return PairRows(rows.astype(np.int32), ptr, self.node[keep], listed[keep], self.complete)

    def of_subgraphs(self, rows: np.ndarray) -> PairRows:
        """Every pair has its subgraph's row: no two subgraphs need have anything in common. ``self`` is :meth:`completed`."""
        row = np.repeat(rows.astype(np.int32), np.diff(self.ptr))
        return self._replace(base=np.full_like(self.base, -1), row=row)

    def joined(self, other: PairRows, table: KeyTable) -> PairRows:
        """The rows of both, looked up in ``table``."""
        table.reserve(len(self.base), len(self.base))
        there, base = (self.base >= 0) & (other.base >= 0), np.full(len(self.base), -1, np.int32)
        base[there] = table.add(self.base[there], np.arange(there.sum() + 1), packed(other.base[there], 0 * other.base[there]))
        complete, room = self.complete | other.complete, len(self.node) + len(other.node)
        new = PairRows.with_room(base, room, complete)
        table.reserve(room, room)
        both = (side._replace(base=side.base.copy()) for side in (self, other))
        join_pairs(*both, np.full(len(base), -1, np.int64), table.arrays, new)
        return new.cut()

    def between(
        self, graphs: GraphSet, edits: Edits, root: np.ndarray, own: np.ndarray, kind: np.ndarray, table: KeyTable
    ) -> PairRows:
        """Messages between subgraphs whose roots are neighbours, looked up in ``table``."""
        whole, bags = self.completed(graphs, edits), Bags(graphs.node_ptr, edits.sub_ptr, root, own)
        size = np.diff(graphs.node_ptr) * np.diff(edits.sub_ptr)
        dense = np.full(int(size.max(initial=0)), -1, np.int32)
        items = np.empty(int(np.diff(graphs.in_ptr).max(initial=0)), np.int64)
        row, done = np.empty_like(whole.row), 0
        while done < graphs.num_graphs:
            done = pass_between(done, bags, Edges.of(graphs), kind, whole, dense, items, table.arrays, row)
            if done < graphs.num_graphs:
                subs = slice(edits.sub_ptr[done], edits.sub_ptr[done + 1])
                pairs = np.diff(whole.ptr)[subs]
                degree = graphs.in_ptr[root[subs] + 1] - graphs.in_ptr[root[subs]]
                table.reserve(int(pairs.sum()), int((pairs * degree).sum()))
        return PairRows(np.full(len(self.base), -1, np.int32), whole.ptr, whole.node, row, whole.complete)
