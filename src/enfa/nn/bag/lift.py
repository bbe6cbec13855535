"""A model for graphs becomes one for bags of subgraphs: the model itself, run on each subgraph as on a graph."""

from __future__ import annotations

import inspect
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.nn import Sequential
from torch_geometric.nn.models.basic_gnn import BasicGNN

from enfa.graphs.names import unknown
from enfa.nn.bag.bag import Bag, check_plan
from enfa.nn.bag.batch import GraphCount, NodeBatch
from enfa.nn.bag.edges import EdgeList
from enfa.nn.bag.views import run_view
from enfa.nn.cuda.captures import Captures
from enfa.nn.ops.function import uncompiled
from enfa.nn.rowwise.refusal import in_words_of_pyg
from enfa.nn.rowwise.rows import Rows

__all__ = ["Lifted", "lift"]

_POOLS = ("sum", "mean", "max")


def lift(
    model: nn.Module,
    *,
    marks: str | None = "concat",
    pool: str | None = None,
    bag_pool: str = "mean",
    head: str = "subgraph",
    edges: str | None = "edge_attr",
) -> Lifted:
    """A PyG model, as it is, as a subgraph GNN.

        model = enfa.lift(torch_geometric.nn.GIN(3 + 1, 32, 4, 2), pool="sum")       # 3 features, and a mark

    The model is one for graphs: ``forward(x, edge_index, ...)``, with ``x_cat``, ``edge_attr``, ``edge_weight`` and ``batch``
    where it has them, or ``forward(data)``. It is neither copied nor changed: the lifted model has its parameters.

    Args:
        model: convs of PyG's or of one's own, and a pool (``global_add_pool``, ``global_mean_pool``, ``global_max_pool``, or a
            module of ``torch_geometric.nn.aggr``).
        marks: what becomes of the policy's marks. ``"concat"``: further columns of x, so the model's input is that much wider;
            ``"add"``: added to x; ``"argument"``: the model gets them as ``mark`` (``data.mark``), [nodes, mark channels],
            for models that embed categories: ``self.atoms(x) + self.marks(mark)``, with an ``nn.Linear``; None: left out.
        pool: for models that return a row for every node: ``"sum"``, ``"mean"`` or ``"max"`` of these.
        bag_pool: ``"sum"``, ``"mean"`` or ``"max"`` over the subgraphs of a graph.
        head: where what follows the model's own pool runs: on every ``"subgraph"``, whose outputs are then pooled, or on the
            ``"graph"``, whose subgraphs are pooled first.
        edges: as which argument the model gets edge attributes, where it has it: ``"edge_attr"``, or ``"edge_weight"``, which
            takes one column; None: none.
    """
    return Lifted(model, marks, pool, bag_pool, head, edges)


_ELSEWHERE = {
    "num_nodes": "global_add_pool(torch.ones_like(x[:, :1]), batch) counts nodes", "mark": "marks='argument' gives marks",
    "pos": "join what nodes have (pos) to x before compiling; what graphs have as a whole is for models of your own on a bag "
           "(bag.graph_attr)",
}  # fmt: skip


class _Late(partial[Any]):
    """What is computed when it is read, by which a model tells that it reads it."""


class _Data(SimpleNamespace):
    """What ``forward(data)`` gets."""

    def __getattribute__(self, name: str) -> Any:
        value = super().__getattribute__(name)
        return value() if isinstance(value, _Late) else value

    def __getattr__(self, name: str) -> Any:
        instead = _ELSEWHERE.get(name, _ELSEWHERE["pos"])
        raise AttributeError(f"Expected one of {', '.join(vars(self))} of a lifted model's data, got {name!r}: {instead}")


class Lifted(Captures):
    """What :func:`lift` makes."""

    def __init__(
        self, model: nn.Module, marks: str | None, pool: str | None, bag_pool: str, head: str, edges: str | None
    ) -> None:
        super().__init__()
        if not isinstance(model, nn.Module):
            raise TypeError(f"Expected a torch.nn.Module to lift, got {type(model).__name__}")
        for name, value, allowed in (
            ("marks", marks, ("concat", "add", "argument", None)),
            ("pool", pool, (*_POOLS, None)), ("bag_pool", bag_pool, _POOLS),
            ("head", head, ("subgraph", "graph")), ("edges", edges, ("edge_attr", "edge_weight", None)),
        ):  # fmt: skip
            if value not in allowed:
                raise unknown(name, str(value), [str(option) for option in allowed])
        self.model = model
        self.marks, self.pool, self.bag_pool, self.head, self.edges = marks, pool, bag_pool, head, edges
        self._takes = _parameters(model)

    def __getattr__(self, name: str) -> Any:
        if name == "save_pretrained":
            raise AttributeError(
                "Expected a model that enfa ships for save_pretrained, got a lifted one: keep its weights with "
                "torch.save(model.state_dict(), path), and read them with model.load_state_dict"
            )
        return super().__getattr__(name)

    def extra_repr(self) -> str:
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in ("marks", "pool", "bag_pool", "head", "edges"))

    @uncompiled
    def forward(self, bag: Bag) -> Tensor:
        check_plan(bag)
        batch = NodeBatch.of(bag, self.bag_pool if self.head == "graph" else None)
        try:
            out = run_view(self.model, **self._arguments(bag, batch))
        except RuntimeError as error:
            self._check_width(bag, error)
            raise
        except TypeError as error:
            in_words_of_pyg(error)
            raise
        if isinstance(out, Rows) and out.kind == "pairs":
            if self.pool is None:
                raise ValueError(
                    f"Expected a model that pools its nodes, got {type(self.model).__name__}, which returns a row for each: "
                    f"give pool='sum', 'mean' or 'max'"
                )
            out = bag.pool(_two_axes(out), self.pool)
        elif self.pool is not None:
            raise ValueError(
                f"Expected a row for every node from {type(self.model).__name__}, because pool={self.pool!r}, got {out!r:.80}"
            )
        if isinstance(out, Rows) and out.kind == "subgraphs":
            pooled = bag.pool(_two_axes(out), self.bag_pool)
            return pooled if out.ndim > 1 else pooled[:, 0]
        if not isinstance(out, Tensor) or self.head != "graph":
            name = type(self.model).__name__
            raise TypeError(f"Expected {name} to return one tensor, a row for each of its graphs, got {type(out).__name__}")
        return out

    def _check_width(self, bag: Bag, error: RuntimeError) -> None:
        """Whether a model that failed was made for features without the marks beside them."""
        features, marks = bag.x_rows.shape[1] - len(bag.categories), bag.mark_rows.shape[1]
        if self.marks == "concat" and f"x{features + marks} and {features}x" in str(error):
            raise ValueError(
                f"Expected {type(self.model).__name__} to take {features + marks} columns, features and mark side by side, "
                f"got one that takes {features}: make its input {features} + {marks} wide"
            ) from error

    def _arguments(self, bag: Bag, batch: NodeBatch) -> dict[str, Any]:
        given: dict[str, Any] = {"x": self._features(bag), "edge_index": EdgeList.of(bag, 0)}
        if self.marks == "argument":
            given["mark"] = _Late(lambda: bag.mark) if self._takes is None else bag.mark
        if bag.categories and (self._takes is None or "x_cat" in self._takes):
            given["x_cat"] = bag.x_cat
        if self._takes is None:  # forward(data)
            given |= {"batch": batch, "num_graphs": GraphCount(), "edge_attr": None, "edge_weight": None}
            if self.edges is not None and bag.edge_rows is not None:
                given[self.edges] = self._edges(bag)
            return {"data": _Data(**given)}
        if "batch" in self._takes:
            given["batch"] = batch
        if self.edges in self._takes and bag.edge_rows is not None:
            given[self.edges] = self._edges(bag)
        name, takes = type(self.model).__name__, ", ".join(self._takes)
        if "mark" in given and "mark" not in self._takes:
            raise TypeError(f"Expected {name} to take an argument 'mark' for marks='argument', got forward({takes})")
        missing = [name for name, needed in self._takes.items() if needed and name not in given]
        if missing:
            see = "marks='argument' gives marks" if missing[0] == "mark" else "see edges="
            raise TypeError(f"{name} needs {missing[0]!r}, but as a lifted model it gets {', '.join(given)} ({see})")
        return given

    def _edges(self, bag: Bag) -> Rows:
        attr: Any = bag.edge_attr
        if self.edges == "edge_weight":
            if attr.value.shape[1] != 1:
                raise ValueError(f"Expected edge attributes of one column for edges='edge_weight', got {attr.value.shape[1]}")
            return attr[:, 0]
        return attr

    def _features(self, bag: Bag) -> Any:
        x: Any = bag.x
        if self.marks in (None, "argument"):
            return x
        mark: Any = bag.mark
        if not x.is_floating_point():
            raise ValueError(
                f"Expected features of floats for marks={self.marks!r}, got categories: give marks='argument', and the model "
                f"takes the marks as an argument 'mark': self.embed(x) + self.marks(mark), where "
                f"self.marks = nn.Linear({bag.mark_rows.shape[1]}, channels)"
            )
        if self.marks == "concat":
            return torch.cat([x, mark.to(x.dtype)], 1)
        wide, marks = x.value.shape[1], mark.value.shape[1]
        if marks not in (1, wide):
            raise ValueError(f"Expected 1 mark channel, or as many as features ({wide}), for marks='add', got {marks}")
        return x + mark.to(x.dtype)


def _two_axes(rows: Any) -> Rows:
    return rows if rows.ndim > 1 else rows[:, None]


def _parameters(model: nn.Module) -> dict[str, bool] | None:
    """What ``forward`` takes, by name, and whether it must have it; None for ``forward(data)``."""
    parameters = [
        p for p in inspect.signature(model.forward).parameters.values() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)
    ]
    takes = {p.name: p.default is p.empty for p in parameters}
    if isinstance(model, Sequential):  # of which some take (*args, **kwargs)
        takes = dict.fromkeys(model.signature.param_dict, True)
    if list(takes)[:1] == ["data"] and sum(takes.values()) <= 1:
        return None
    if "x" not in takes or "edge_index" not in takes:
        raise TypeError(
            f"Expected a model with forward(x, edge_index, ...) or forward(data), got {type(model).__name__} with "
            f"forward({', '.join(takes)}): rename its arguments, which are told by their names, or lift a module around it"
        )
    if isinstance(model, BasicGNN):  # it has both arguments, whether its convs read them or not
        unread = {"edge_attr": not model.supports_edge_attr, "edge_weight": not model.supports_edge_weight}
        takes = {name: needed for name, needed in takes.items() if not unread.get(name, False)}
    return takes
