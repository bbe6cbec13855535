"""The edits of all bags, as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from enfa.graphs import GraphSet
from enfa.graphs.graphset import ranges
from enfa.graphs.numbers import integers

__all__ = ["DELETE", "Edits", "chosen_subgraphs"]

DELETE = -1  # the value of an edit that deletes; a value m >= 1 marks with row m of the mark table


def chosen_subgraphs(sub_ptr: np.ndarray, graphs: np.ndarray, subs: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """``(subgraphs, how many of each graph)``: whole bags, or those of ``subs`` only.

    ``subs`` holds subgraph numbers, graph by graph in the order of ``graphs``, each at most once.
    """
    counts = sub_ptr[graphs + 1] - sub_ptr[graphs]
    if subs is None:
        return ranges(sub_ptr[graphs], counts), counts
    subs = np.asarray(subs, np.int64)
    if len(np.unique(subs)) != len(subs):
        raise ValueError("Expected each subgraph at most once in a draw, got some twice")
    position = np.full(len(sub_ptr) - 1, -1, np.int64)
    position[graphs] = np.arange(len(graphs))
    if len(subs) and not 0 <= subs.min() <= subs.max() < sub_ptr[-1]:
        raise ValueError(f"Expected subgraphs 0 to {sub_ptr[-1] - 1}, got {subs.min()} to {subs.max()}")
    of_graph = position[np.searchsorted(sub_ptr, subs, side="right") - 1]
    if (of_graph < 0).any() or (np.diff(of_graph) < 0).any():
        raise ValueError("Expected a draw from the bags of the chosen graphs, graph by graph in their order")
    return subs, np.bincount(of_graph, minlength=len(graphs))


def _count_ptr(counts: np.ndarray) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def _short(marks: Any) -> np.ndarray:
    exact = np.asarray(marks, np.float64)
    with np.errstate(over="ignore"):
        short = exact.astype(np.float32)
    return short if np.array_equal(short, exact, equal_nan=True) else exact


@dataclass(frozen=True)
class Edits:
    """Subgraph s is its graph with node edits ``node_ptr[s]:node_ptr[s+1]`` and likewise edge edits.

    A node edit sets ``node_value``: DELETE (-1) removes the node with its edges, m >= 1 gives it mark m.
    An edge edit does the same to one *directed* edge, so an undirected one takes two. Nodes and edges are
    numbered as in the :class:`~enfa.graphs.GraphSet`. ``marks[m]`` is what mark m means to a model: the input
    channels that a marked node gets; ``marks[0]`` is what every other node gets.

    Where ``keeps[s]`` is set, the node edits of subgraph s list the nodes that it *has*, each with its mark (0 for
    none), and all others are deleted: the short way to say that nearly everything is. ``root[s]`` names the nodes that
    subgraph s is about: one for a node-rooted policy, two for an edge-rooted one, -1 where there is none.

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
    marks: np.ndarray  # float32, or float64 where float32 does not hold them, [values, channels]
    edge_marks: np.ndarray  # likewise; no channels where edges are not marked
    keeps: np.ndarray | None = None  # bool [S]; None: no subgraph does
    root: np.ndarray | None = None  # int64 [S, 1 or 2]; None: the policy has no roots

    @staticmethod
    def build(
        subgraphs: np.ndarray,
        node: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        edge: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None,
        marks: Sequence[Sequence[float]] | np.ndarray = ((0.0,),),
        edge_marks: Sequence[Sequence[float]] | np.ndarray = ((),),
        keeps: np.ndarray | None = None,
        root: np.ndarray | None = None,
    ) -> Edits:
        """From the number of subgraphs of each graph and (count per subgraph, targets, values) triples.

        A graph whose bag would be empty gets one unedited subgraph, without a root.
        """
        subgraphs = integers("subgraphs", subgraphs)
        empty = subgraphs == 0
        counts = np.where(empty, 1, subgraphs)
        total = int(counts.sum())
        # places, among the new subgraphs, of those that the policy made
        made = np.repeat(~empty, counts)

        def of_each(name: str, array: np.ndarray) -> np.ndarray:
            if np.shape(array)[:1] != (made.sum(),):  # one would be taken for all
                got = len(array) if np.ndim(array) else "one for all"
                raise ValueError(f"Expected {name} for each of {made.sum()} subgraphs, got {got}")
            return array

        def lists(what: str, triple: tuple[np.ndarray, np.ndarray, np.ndarray] | None) -> tuple[np.ndarray, ...]:
            sizes = np.zeros(total, np.int64)
            if triple is None:
                return _count_ptr(sizes), np.zeros(0, np.int64), np.zeros(0, np.int64)
            sizes[made] = of_each(f"{what} count", integers(f"{what} count", triple[0], bools=True))
            return _count_ptr(sizes), integers(what, triple[1]), integers(f"{what} value", triple[2], bools=True)

        if keeps is not None:
            of_policy, keeps = keeps, np.zeros(total, bool)
            keeps[made] = of_each("keeps", of_policy)
        if root is not None:
            of_policy = root[:, None] if root.ndim == 1 else root
            root = np.full((total, of_policy.shape[1]), -1, np.int64)
            root[made] = of_each("root", integers("root", of_policy))
        node_ptr, nodes, node_value = lists("node", node)
        edge_ptr, edges, edge_value = lists("edge", edge)
        return Edits(
            _count_ptr(counts), node_ptr, nodes, node_value, edge_ptr, edges, edge_value,
            _short(marks), _short(edge_marks), keeps, root,
        )  # fmt: skip

    @property
    def num_subgraphs(self) -> int:
        return len(self.node_ptr) - 1

    @cached_property
    def graph(self) -> np.ndarray:
        """int64 [S]: the graph of each subgraph."""
        return np.repeat(np.arange(len(self.sub_ptr) - 1), np.diff(self.sub_ptr))

    @cached_property
    def kept(self) -> np.ndarray:
        """bool [S]: ``keeps``, written out."""
        return np.zeros(self.num_subgraphs, bool) if self.keeps is None else self.keeps

    def sizes(self, graphs: GraphSet) -> np.ndarray:
        """int64 [S]: how many nodes each subgraph has."""
        gone = np.concatenate([[0], np.cumsum(self.node_value == DELETE)])
        left = np.diff(graphs.node_ptr)[self.graph] - (gone[self.node_ptr[1:]] - gone[self.node_ptr[:-1]])
        return np.where(self.kept, np.diff(self.node_ptr), left)

    def subset(self, graphs: GraphSet, chosen: Sequence[int] | np.ndarray, subs: np.ndarray | None = None) -> Edits:
        """The bags of the chosen graphs, numbered as in ``graphs.subset(chosen)``.

        ``subs``, if given, are the subgraphs of these bags to take, as :func:`chosen_subgraphs` wants them.
        """
        picked = np.asarray(chosen, np.int64)
        subs, counts = chosen_subgraphs(self.sub_ptr, picked, subs)

        def lists(ptr: np.ndarray, target: np.ndarray, value: np.ndarray, own: np.ndarray) -> list[np.ndarray]:
            sizes = np.diff(ptr)[subs]
            take = ranges(ptr[subs], sizes)
            new = np.concatenate([[0], np.cumsum(np.diff(own)[picked])])[:-1]
            shift = np.repeat(np.repeat(new - own[picked], counts), sizes)
            return [_count_ptr(sizes), target[take] + shift, value[take]]

        root = None
        if self.root is not None:
            first = np.concatenate([[0], np.cumsum(np.diff(graphs.node_ptr)[picked])])[:-1]
            shift = np.repeat(first - graphs.node_ptr[picked], counts)[:, None]
            root = np.where(self.root[subs] < 0, -1, self.root[subs] + shift)
        return replace(
            self,
            **dict(zip(("node_ptr", "node", "node_value"),
                       lists(self.node_ptr, self.node, self.node_value, graphs.node_ptr))),
            **dict(zip(("edge_ptr", "edge", "edge_value"),
                       lists(self.edge_ptr, self.edge, self.edge_value, graphs.edge_ptr))),
            sub_ptr=_count_ptr(counts),
            keeps=None if self.keeps is None else self.keeps[subs],
            root=root,
        )  # fmt: skip
