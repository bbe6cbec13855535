"""What a plan needs beside the rows, and the graphs that it is of."""

from functools import cached_property
from typing import Any

import numpy as np
from torch import Tensor

from enfa.edits.edits import chosen_subgraphs
from enfa.graphs.graphset import ranges
from enfa.plan.arrays import tensor
from enfa.plan.reference.expand import largest_value
from enfa.plan.reference.full import edge_tables_of
from enfa.plan.step import Program

__all__ = ["Bags", "Sources"]


class Sources:
    """What a plan needs beside the rows: where graphs begin, and what kinds stand for."""

    def __init__(self, program: Program, **arrays: Any) -> None:
        self.program, self.arrays = program, arrays
        self.node_ptr: np.ndarray = arrays["node_ptr"]
        self.sub_ptr: np.ndarray = arrays["sub_ptr"]
        self.sub_size: np.ndarray = arrays["sub_size"]  # int64 [S]: nodes of every subgraph
        self.start_feature: np.ndarray = arrays["start_feature"]  # by start kind, row of x
        self.start_graph: np.ndarray = arrays["start_graph"]
        self.x: np.ndarray = arrays["x"]
        self.marks: np.ndarray = arrays["marks"]
        self.root: np.ndarray | None = arrays["root"]  # int64 [S, roots], counted within each graph
        self.categories = tuple(arrays["categories"].tolist())
        self.limits = largest_value(arrays["x"]), largest_value(arrays["edge_attr"])
        self.edge_attr, self.edge_mark = edge_tables_of(program, arrays["edge_attr"], arrays["edge_marks"])

    @cached_property
    def first_pair(self) -> np.ndarray:
        """int64 [S+1]: where the pairs of each subgraph begin."""
        return np.concatenate([[0], np.cumsum(self.sub_size)])

    @property
    def pair_ptr(self) -> np.ndarray:
        """int64 [G+1]: where the pairs of each graph begin."""
        return self.first_pair[self.sub_ptr]


class Bags:
    """Some graphs and their bags, or parts of these (``subs``): what is counted of each kind, and where it stands."""

    def __init__(self, sources: Sources, graphs: np.ndarray, subs: np.ndarray | None = None) -> None:
        self.graphs, self.whole, self._node_ptr = graphs, subs is None, sources.node_ptr
        self.sub, self.subs = chosen_subgraphs(sources.sub_ptr, graphs, subs)  # and how many of each graph
        self._nodes = sources.node_ptr[graphs + 1] - sources.node_ptr[graphs]
        pairs = int(sources.sub_size[self.sub].sum())
        self._sources = sources
        self.count = {"pairs": pairs, "nodes": int(self._nodes.sum()), "subgraphs": len(self.sub), "graphs": len(graphs)}

    @cached_property
    def node(self) -> np.ndarray:
        return ranges(self._node_ptr[self.graphs], self._nodes)

    def roots(self, local: np.ndarray | None) -> Tensor | None:
        """int64 [S, roots]: as nodes of the batch."""
        if local is None:
            return None
        first = np.repeat(np.cumsum(self._nodes) - self._nodes, self.subs)[:, None]
        return tensor(np.where(local[self.sub] < 0, -1, local[self.sub] + first))

    def placed(self, kind: str) -> np.ndarray:
        """Numbers in the whole dataset."""
        found = {"nodes": lambda: self.node, "subgraphs": lambda: self.sub, "graphs": lambda: self.graphs}
        return found.get(kind, self._pairs)()

    def _pairs(self) -> np.ndarray:
        return ranges(self._sources.first_pair[self.sub], self._sources.sub_size[self.sub])
