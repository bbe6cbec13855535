"""What a model can see: its steps, which inputs it reads, and what its pools keep of what they pool.

A plan tells rows apart by all that any model could read. A model that never asks for marks sees none, and a mean does not see
of how many rows it is; so both are noted while the model is traced.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor, nn

from enfa.edits import Edits, Policy
from enfa.graphs import GraphSet
from enfa.graphs.kinds import distinct_rows
from enfa.nn.bag.trace import TracingBag, traced
from enfa.plan.step import Step

__all__ = ["Reading", "read_by", "visible"]

# What a pool keeps, from most to least: the multiset of rows, their proportions (mean, softmax), or which rows there are (max).
KEPT = ("sum", "mean", "max")
INPUTS = ("x", "x_cat", "mark", "edge_attr", "edge_mark")


def finest(kept: set[str]) -> str:
    """What several pools of the same rows keep together: each of ``KEPT`` determines those behind it."""
    return next(how for how in KEPT if how in kept)


@dataclass(frozen=True)
class Reading:
    """The steps of a model, with what each pool keeps (None: the step is no pool), and the inputs that it reads."""

    steps: tuple[tuple[Step, str | None], ...]
    inputs: frozenset[str]
    loops: bool


class ReadingBag(TracingBag):
    """Notes what is read of it."""

    @property
    def inputs(self) -> set[str]:
        return self.__dict__.setdefault("_inputs", set())

    @property
    def kept(self) -> dict[int, set[str]]:
        return self.__dict__.setdefault("_kept", {})

    def _pooled(self, h: Any, number: int, how: str, score: Tensor | None) -> Tensor:
        self.kept.setdefault(number, set()).add("mean" if how == "softmax" else how)
        return super()._pooled(h, number, how, score)


def _noting(name: str) -> property:
    def get(self: ReadingBag) -> Any:
        self.inputs.add(name)
        return getattr(TracingBag, name).fget(self)

    return property(get)


for _name in INPUTS:
    setattr(ReadingBag, _name, _noting(_name))


def read_by(model: nn.Module, graphs: GraphSet, policy: Policy) -> Reading:
    """Trace a model that pools to graphs. Refused are models whose rows depend on more than rows and inputs."""
    name = type(model).__name__
    try:
        bag = traced(model, graphs, policy, {}, ReadingBag)
    except KeyError as error:
        raise ValueError(
            f"Expected a model that reads rows only, but {name} asks for {error}: attributes of whole graphs "
            f"(bag.graph_attr) are left out, because they tell graphs apart without any message"
        ) from error
    if bag.apart:
        raise ValueError(
            f"Expected a model whose rows depend on rows only, but {name} spreads a tensor of graphs to pairs: write it with "
            f"bag.spread of nodes or subgraphs"
        )
    if not any(step.kind == "graphs" for step in bag.program.steps):
        raise ValueError(f"Expected a model that pools to graphs (bag.pool), but {name} does not")
    kept = [finest(bag.kept[n]) if n in bag.kept else None for n in range(len(bag.program.steps))]
    return Reading(tuple(zip(bag.program.steps, kept)), frozenset(bag.inputs), not bag.loopless)


def visible(graphs: GraphSet, edits: Edits, inputs: frozenset[str]) -> tuple[GraphSet, Edits]:
    """Graphs and edits in which what is not read, and what has the same value, is the same number."""
    floats = graphs.x.shape[1] - len(graphs.categories)
    columns = [column for column in range(graphs.x.shape[1]) if ("x" if column < floats else "x_cat") in inputs]
    kind, x = distinct_rows(graphs.x[:, columns])
    graphs = replace(graphs, x=x, categories=graphs.categories[:0], node_kind=kind[graphs.node_kind])
    if graphs.edge_attr is not None:
        kind, attr = distinct_rows(graphs.edge_attr if "edge_attr" in inputs else graphs.edge_attr[:, :0])
        graphs = replace(graphs, edge_attr=attr, edge_kind=kind[graphs.edge_kind])
    return graphs, replace(
        edits,
        node_value=_as_seen(edits.node_value, edits.marks, "mark" in inputs),
        edge_value=_as_seen(edits.edge_value, edits.edge_marks, "edge_mark" in inputs),
    )


def _as_seen(value: np.ndarray, marks: np.ndarray, seen: bool) -> np.ndarray:
    """Marks of one meaning as the first of them, all as 0 where they are not seen; deletions (below 0) stay."""
    kind, _ = distinct_rows(marks if seen else marks[:, :0])
    first = np.array([int(np.argmax(kind == k)) for k in kind], np.int64)
    return np.where(value < 0, value, first[np.maximum(value, 0)])
