"""What a policy is, and how to write one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.graphs import GraphSet
from enfa.graphs.numbers import integer

__all__ = ["GraphView", "Policy", "Subgraph", "views"]


@dataclass(frozen=True)
class GraphView:
    """One graph, as a policy of one's own sees it: nodes from 0, edges in the order of the input."""

    position: int
    num_nodes: int
    edge_index: np.ndarray  # int64 [2, edges]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copying and pickling ask
            raise AttributeError(name)
        raise AttributeError(
            f"Expected a policy to read position, num_nodes or edge_index of a graph, got {name!r}: policies see no features; "
            f"what belongs to each graph can be looked up by its position"
        )


def views(graphs: GraphSet) -> Iterator[tuple[GraphView, np.ndarray]]:
    """Each graph as a policy of one's own sees it, and the numbers of its edges."""
    place = np.empty(graphs.num_edges, np.int64)  # input order -> edge number
    place[graphs.order] = np.arange(graphs.num_edges)
    for g, (first, last) in enumerate(pairwise(graphs.node_ptr)):
        local = place[graphs.edge_ptr[g] : graphs.edge_ptr[g + 1]]
        index = np.stack([graphs.src[local], graphs.dst[local]]) - first
        yield GraphView(graphs.first + g, int(last - first), index), local


class Subgraph:
    """One subgraph being described: call its methods, in any order.

    >>> one = Subgraph().mark_node(3).delete_edge(0)
    >>> one.nodes, one.edges
    ([(3, 1)], [(0, -1)])
    """

    def __init__(self) -> None:
        self.nodes: list[tuple[int, int]] = []
        self.edges: list[tuple[int, int]] = []
        self.kept: list[int] | None = None
        self.root: tuple[int, ...] = ()

    def mark_node(self, node: int, mark: int = 1) -> Subgraph:
        self.nodes.append((integer("node", node), integer("mark", mark, bools=True)))
        return self

    def delete_node(self, node: int) -> Subgraph:
        return self.mark_node(node, DELETE)

    def keep_nodes(self, nodes: Iterable[int]) -> Subgraph:
        """Only these nodes and the edges between them; all others are deleted."""
        if self.kept is not None:
            raise ValueError("Expected keep_nodes once for a subgraph, got it twice: name all of its nodes at once")
        self.kept = [integer("node", n) for n in nodes]
        return self

    def mark_edge(self, edge: int, mark: int = 1) -> Subgraph:
        """``edge`` is a column of edge_index: one direction."""
        self.edges.append((integer("edge", edge), integer("mark", mark, bools=True)))
        return self

    def delete_edge(self, edge: int) -> Subgraph:
        return self.mark_edge(edge, DELETE)

    def rooted_at(self, *nodes: int) -> Subgraph:
        """The node, or the two ends of the edge, that the subgraph is about: what ``readout="root"`` reads."""
        if self.root:
            raise ValueError("Expected rooted_at once for a subgraph, got it twice: name both ends of a root edge at once")
        self.root = tuple(integer("node", n) for n in nodes)
        return self

    def node_edits(self, where: str) -> list[tuple[int, int]]:
        """(node, value) pairs; for a subgraph that keeps nodes, all that it has."""
        if self.kept is None:
            return self.nodes
        values = dict.fromkeys(self.kept, 0)
        for node, value in self.nodes:
            if value == DELETE or node not in values:
                raise ValueError(f"{where} edits node {node}, which keep_nodes has decided on")
            values[node] = value
        return list(values.items())


class Policy:
    """Graph -> the edits of each subgraph in its bag.

    Write your own by overriding :meth:`bag`, which yields one :class:`Subgraph` per subgraph. That runs Python code
    per subgraph; the policies shipped here override :meth:`edits` instead and work on all graphs at once.
    A policy's parameters are plain attributes, so that ``repr`` and caches can tell policies apart.
    """

    marks: tuple[tuple[float, ...], ...] = ((0.0,), (1.0,))  # row m: the input channels of a node with mark m
    edge_marks: tuple[tuple[float, ...], ...] = ((),)

    def bag(self, graph: GraphView) -> Iterable[Subgraph]:
        """Yield the subgraphs of one graph. None at all means one unedited subgraph."""
        raise TypeError(f"{type(self).__name__} must define bag(graph) or edits(graphs)")

    def edits(self, graphs: GraphSet) -> Edits:
        """The edits of all bags.

        A policy that depends on a graph's place in the dataset counts from ``graphs.first``, so that graphs which are added
        later get what they would have got at once.
        """
        counts, nodes, edges, keeps, roots = [], [], [], [], []
        for g, (view, local) in enumerate(views(graphs)):
            first, found = graphs.node_ptr[g], self.bag(view)
            if not isinstance(found, Iterable) and not hasattr(found, "__getitem__"):
                got = "one alone: yield it" if isinstance(found, Subgraph) else type(found).__name__
                raise TypeError(f"{self!r}: graph {g}: Expected bag() to yield Subgraph objects, got {got}")
            bag = list(found)
            counts.append(len(bag))
            for r, one in enumerate(bag):
                if not isinstance(one, Subgraph):
                    raise TypeError(f"{self!r}: graph {g}: Expected bag() to yield Subgraph objects, got {one!r}")
                for edge, _ in one.edges:
                    if not 0 <= edge < len(local):
                        raise ValueError(
                            f"{self!r}: graph {g} has {len(local)} edges, but subgraph {r} of its bag edits edge {edge}"
                        )
                where = f"{self!r}: graph {g}: subgraph {r}"
                nodes.append([(n + first, value) for n, value in one.node_edits(where)])
                edges.append([(local[e], value) for e, value in one.edges])
                keeps.append(one.kept is not None)
                for n in one.root:  # checked here: counted through all graphs, it might fall into another
                    if not 0 <= n < view.num_nodes:
                        raise ValueError(f"{where} has node {n} as its root; the graph has {view.num_nodes} nodes")
                roots.append([n + first for n in one.root])

        def triple(lists: list[list[tuple[int, int]]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
            flat = np.array([pair for one in lists for pair in one], np.int64).reshape(-1, 2)
            return np.array([len(one) for one in lists], np.int64), flat[:, 0], flat[:, 1]

        width = max((len(root) for root in roots), default=0)
        if any(len(root) not in (0, width) for root in roots) or width > 2:
            raise ValueError(f"{self!r}: Expected one root in every subgraph that has any, or two in each")
        root = np.array([r + [-1] * (width - len(r)) for r in roots], np.int64) if width else None
        return Edits.build(
            np.array(counts), triple(nodes), triple(edges), self.marks, self.edge_marks, np.array(keeps, bool), root
        )

    def for_any_graph(self) -> Policy:
        """What a model is traced with, on a graph that need not be one of the dataset: another policy, where the parameters of
        this one are about its graphs."""
        return self

    @classmethod
    def name(cls) -> str:
        """The class name as configuration files write it: NodeMarking is ``node_marking``."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__).lower()

    @property
    def mark_channels(self) -> int:
        """What a model's ``mark_channels`` must be."""
        return len(self.marks[0])

    @property
    def edge_mark_channels(self) -> int:
        """What a model's ``edge_mark_channels`` must be."""
        return len(self.edge_marks[0])

    @property
    def params(self) -> dict[str, object]:
        """The parameters that tell this policy from another of its class; a policy among them is a mapping, as in configs."""
        return {
            name: {"name": value.name(), **value.params} if isinstance(value, Policy) else value
            for name, value in vars(self).items()
        }

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{k}={v!r}' for k, v in self.params.items())})"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, Policy) and self.params == other.params

    def __hash__(self) -> int:
        return hash(repr(self))
