"""The edits of all bags, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges

__all__ = ["DELETE", "Edits"]

DELETE = -1  # the value of an edit that deletes; a value m >= 1 marks with row m of the mark table


def _count_ptr(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


@dataclass(frozen=True)
class Edits:
    """Subgraph s is its graph with node edits ``node_ptr[s]:node_ptr[s+1]`` and likewise edge edits.

    A node edit sets ``node_value``: DELETE (-1) removes the node with its edges, m >= 1 gives it mark m.
    An edge edit does the same to one *directed* edge, so an undirected one takes two. Nodes and edges are
    numbered as in the :class:`~enfa.graphs.GraphSet`. ``marks[m]`` is what mark m means to a model: the input
    channels that a marked node gets; ``marks[0]`` is what every other node gets.

    Example: both nodes of a path a - b marked in turn (node marking)::

        sub_ptr = [0, 2]   node_ptr = [0, 1, 2]   node = [0, 1]   node_value = [1, 1]
        marks = [[0.], [1.]]   edge_ptr = [0, 0, 0]   edge = []   edge_value = []
    """

    sub_ptr: np.ndarray  # int64 [G+1], the subgraphs of each graph
    node_ptr: np.ndarray  # int64 [S+1]
    node: np.ndarray  # int64
    node_value: np.ndarray  # int64
    edge_ptr: np.ndarray  # int64 [S+1]
    edge: np.ndarray  # int64
    edge_value: np.ndarray  # int64
    marks: np.ndarray  # float32 [values, channels]
    edge_marks: np.ndarray  # float32 [values, channels]; no channels where edges are not marked

    @staticmethod
    def build(
        subgraphs: np.ndarray,
        node: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        edge: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        marks: Sequence[Sequence[float]] | np.ndarray = ((0.0,),),
        edge_marks: Sequence[Sequence[float]] | np.ndarray = ((),),
    ) -> Edits:
        """From the number of subgraphs of each graph and (count per subgraph, targets, values) triples.

        A graph whose bag would be empty gets one unedited subgraph.
        """
        empty = np.asarray(subgraphs) == 0
        counts = np.where(empty, 1, subgraphs)
        total = int(counts.sum())
        # places, among the new subgraphs, of those that the policy made
        made = np.repeat(~empty, counts)

        def lists(triple: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, ...]:
            sizes = np.zeros(total, np.int64)
            if triple is None:
                return _count_ptr(sizes), np.zeros(0, np.int64), np.zeros(0, np.int64)
            sizes[made] = triple[0]
            return _count_ptr(sizes), np.asarray(triple[1], np.int64), np.asarray(triple[2], np.int64)

        tables = [np.asarray(m, np.float32) for m in (marks, edge_marks)]
        return Edits(_count_ptr(counts), *lists(node), *lists(edge), *tables)

    @property
    def num_subgraphs(self) -> int:
        return len(self.node_ptr) - 1

    @cached_property
    def graph(self) -> np.ndarray:
        """int64 [S]: the graph of each subgraph."""
        return np.repeat(np.arange(len(self.sub_ptr) - 1), np.diff(self.sub_ptr))

    @cached_property
    def deleted(self) -> np.ndarray:
        """int64 [S]: how many nodes each subgraph lacks."""
        gone = np.concatenate([[0], np.cumsum(self.node_value == DELETE)])
        return gone[self.node_ptr[1:]] - gone[self.node_ptr[:-1]]

    def subset(self, graphs: GraphSet, chosen: Sequence[int] | np.ndarray) -> Edits:
        """The bags of the chosen graphs, numbered as in ``graphs.subset(chosen)``."""
        picked = np.asarray(chosen, np.int64)
        counts = np.diff(self.sub_ptr)[picked]
        subs = ranges(self.sub_ptr[picked], counts)

        def lists(ptr: np.ndarray, target: np.ndarray, value: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
            sizes = np.diff(ptr)[subs]
            take = ranges(ptr[subs], sizes)
            new = np.concatenate([[0], np.cumsum(np.diff(own)[picked])])[:-1]
            shift = np.repeat(np.repeat(new - own[picked], counts), sizes)
            return [_count_ptr(sizes), target[take] + shift, value[take]]

        return replace(
            self,
            **dict(zip(("node_ptr", "node", "node_value"),
                       lists(self.node_ptr, self.node, self.node_value, graphs.node_ptr))),
            **dict(zip(("edge_ptr", "edge", "edge_value"),
                       lists(self.edge_ptr, self.edge, self.edge_value, graphs.edge_ptr))),
            sub_ptr=_count_ptr(counts),
        )  # fmt: skip

    def check(self, graphs: GraphSet, policy: str) -> Edits:
        """Refuse edits outside their graph and edits that contradict each other."""
        for what, ptr, target, value, own, marks in (
            ("node", self.node_ptr, self.node, self.node_value, graphs.node_ptr, self.marks),
            ("edge", self.edge_ptr, self.edge, self.edge_value, graphs.edge_ptr, self.edge_marks),
        ):
            sub = np.repeat(np.arange(self.num_subgraphs), np.diff(ptr))
            graph = self.graph[sub]
            bad = (target < own[graph]) | (target >= own[graph + 1])
            if bad.any():
                i = int(np.argmax(bad))
                raise ValueError(
                    f"{policy}: graph {graph[i]} has {own[graph[i] + 1] - own[graph[i]]} {what}s, but subgraph "
                    f"{sub[i] - self.sub_ptr[graph[i]]} of its bag edits {what} {target[i] - own[graph[i]]}"
                )
            bad = (value != DELETE) & ((value < 1) | (value >= len(marks)))
            if bad.any():
                i = int(np.argmax(bad))
                raise ValueError(
                    f"{policy}: graph {graph[i]}: Expected a {what} edit to be DELETE or a mark from 1 to "
                    f"{len(marks) - 1}, got {value[i]}"
                )
            key = np.sort(sub * (int(own[-1]) + 1) + target)
            twice = key[1:][key[1:] == key[:-1]]
            if len(twice):
                s, t = divmod(int(twice[0]), int(own[-1]) + 1)
                g = int(self.graph[s])
                raise ValueError(
                    f"{policy}: graph {g}: subgraph {s - self.sub_ptr[g]} edits {what} {t - own[g]} twice"
                )
        return self
