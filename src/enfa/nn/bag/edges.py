"""What PyG's code gets in place of an edge list, and values on its edges.

Rows of two tables have no edge list of one graph: which rows a row reads is known once messages are passed, and then only to
the round of messages. So an edge list here is a note of what it stands for, and values on edges are functions of a round. Convs
ask ``isinstance(edge_index, Tensor)``, and do something else, or nothing, if it is not; so an edge list is a Tensor, without
values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from enfa.nn.rowwise.elementwise import ELEMENTWISE, elementwise
from enfa.nn.rowwise.refusal import name_of
from enfa.nn.rowwise.rows import EDGES, Rows
from enfa.plan.step import Step

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag
    from enfa.nn.bag.rounds import Round

__all__ = ["EdgeEnds", "EdgeList", "LinkValues", "StandIn"]

_PROPERTIES = ("device", "dtype", "layout", "is_sparse", "is_cuda", "requires_grad", "ndim")
_HARMLESS = {getattr(Tensor, name).__get__ for name in _PROPERTIES} | {Tensor.dim, Tensor.is_floating_point, Tensor.get_device}


class StandIn(Tensor):
    """A tensor of which nothing may be read but what is the same for every plan."""

    what = "a list"

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in _HARMLESS:
            with torch._C.DisableTorchFunctionSubclass():
                return func(*args, **(kwargs or {}))
        name = getattr(func, "__name__", str(func)).strip("_")
        if name == "get":  # of a property
            name = getattr(getattr(func, "__self__", None), "__name__", name)
        raise TypeError(
            f"The model reads {cls.what} by itself ({name}), but rows stand for many nodes, and which ones depends on the "
            f"plan: only what passes messages and pools may read it"
        )

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        return f"{type(self).__name__}()"

    __hash__ = object.__hash__


class EdgeList(StandIn):
    """The edges of every subgraph, or of the graphs, or between subgraphs; ``loops``: and one from every node to itself."""

    what = "the edge list"
    bag: Bag
    base: int
    along: str
    loops: bool
    mask: Rows | None

    @staticmethod
    def of(bag: Bag, base: int, along: str = "nodes", loops: bool = False, mask: Rows | None = None) -> EdgeList:
        """``base``: a table whose rows the edges lead to, for counting them. ``mask``: the kinds of edges that are there."""
        new = torch.empty(2, 0, dtype=torch.int64, device=bag.device).as_subclass(EdgeList)
        new.bag, new.base, new.along, new.loops, new.mask = bag, base, along, loops, mask
        return new

    def with_loops(self) -> EdgeList:
        self.bag.note_loops()
        if self.mask is not None:
            raise TypeError("Expected self-loops to be added to all edges, got edges of some relations only")
        return EdgeList.of(self.bag, self.base, self.along, True)

    def masked(self, mask: Any) -> EdgeList:
        if not isinstance(mask, Rows) or mask.number != EDGES or mask.dtype != torch.bool or mask.ndim != 1 or self.loops:
            raise TypeError(f"Expected edges to be picked by their attributes (edge_type == 2), got {mask!r}")
        both: Any = mask if self.mask is None else mask.of(mask.value & self.mask.value)
        return EdgeList.of(self.bag, self.base, self.along, False, both)

    def degree(self, dtype: torch.dtype | None, weight: Any = None, loop: float = 1.0) -> Rows:
        """[rows]: how many edges lead to a node, or the sum of their weights; each added loop counts ``loop``."""
        if self.mask is not None:
            raise TypeError("Expected degrees of all edges, got edges of some relations only")
        bag, dtype = self.bag, dtype or torch.get_default_dtype()
        kind = bag.program.steps[self.base].kind
        if weight is None and kind == "pairs" and self.along == "nodes":
            counted: Any = bag.degree
            found = counted[:, 0].to(dtype)
        else:
            number = bag.step(Step("propagate", kind, (self.base,), weight is not None, self.along))
            from enfa.nn.bag.rounds import Round

            rounds = Round(bag, EdgeList.of(bag, self.base, self.along), self.base, number)
            if weight is None:
                value = rounds.degrees.to(dtype)
            else:
                each = rounds.on_links(weight)
                value = each.new_zeros(rounds.links.num_rows).index_add(0, rounds.ends[1], each)
            found = bag._rows(value, number)
        return found + loop if self.loops else found

    def __iter__(self) -> Iterator[Any]:
        return iter((EdgeEnds(self, True), EdgeEnds(self, False)))

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, int) and index in (0, 1):
            return EdgeEnds(self, index == 0)
        if isinstance(index, tuple) and len(index) == 2 and index[0] == slice(None) and isinstance(index[1], Rows):
            return self.masked(index[1])
        return StandIn.__torch_function__.__func__(EdgeList, Tensor.__getitem__, (EdgeList,))  # type: ignore[attr-defined]


class EdgeEnds:
    """The sources of edges, or their targets: ``h[row]`` is a value for every edge."""

    def __init__(self, edges: EdgeList, source: bool) -> None:
        self.edges, self.source = edges, source

    def picked(self, rows: Rows) -> LinkValues:
        if rows.kind not in ("pairs", "nodes"):
            raise TypeError(f"Expected Rows of pairs or nodes at the ends of edges, got {rows}")
        return LinkValues((rows,), False, self.edges.loops, lambda r: r.at(rows, self.source))

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return EdgeList.__torch_function__(func, types, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return EdgeList.__torch_function__(getattr(Tensor, name, name), (EdgeList,))

    def __eq__(self, other: object) -> bool:
        return EdgeList.__torch_function__(Tensor.__eq__, (EdgeList,))

    def __ne__(self, other: object) -> bool:
        return EdgeList.__torch_function__(Tensor.__ne__, (EdgeList,))

    __hash__ = object.__hash__


class LinkValues:
    """A value for every edge that a round of messages will run along.

    ``rows``: what is read of nodes; ``edges``: whether attributes of edges are read; ``loops``: whether added self-loops have
    one.
    """

    def __init__(self, rows: tuple[Rows, ...], edges: bool, loops: bool, make: Callable[[Round], Tensor]) -> None:
        self.rows, self.edges, self.loops, self.make = rows, edges, loops, make

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Each number by itself, once the edges are known."""
        given = [LinkValues._of(value) for value in args]
        values = [value for value in given if isinstance(value, LinkValues)]
        tensors = [value for value in (*given, *(kwargs or {}).values()) if isinstance(value, (Tensor, Rows))]
        handler, _ = ELEMENTWISE.get(func, (None, ""))
        if handler is not elementwise or len({v.loops for v in values}) > 1 or any(t.ndim for t in tensors):
            raise TypeError(
                f"The model computes with values on edges outside of messages ({name_of(func)}), where edges are not known "
                f"yet: only what computes each number by itself can wait; do the rest in the conv's message()"
            )

        def make(rounds: Round) -> Tensor:
            return func(*(v.make(rounds) if isinstance(v, LinkValues) else v for v in given), **(kwargs or {}))

        rows = tuple(r for value in values for r in value.rows)
        return LinkValues(rows, any(v.edges for v in values), values[0].loops, make)

    @staticmethod
    def _of(value: Any) -> Any:
        """Attributes of edges are values on edges."""
        if isinstance(value, Rows) and value.number == EDGES:
            return LinkValues((), True, False, lambda rounds: rounds.on_links(value))
        return value

    def __getattr__(self, name: str) -> Any:
        method = getattr(Tensor, name, None)
        if name.startswith("__") or not callable(method):
            raise AttributeError(f"Values on edges have no {name!r}")
        return lambda *args, **kwargs: LinkValues.__torch_function__(method, (LinkValues,), (self, *args), kwargs)


def _operator(name: str) -> Callable:
    return lambda self, *args: LinkValues.__torch_function__(getattr(Tensor, name), (LinkValues,), (self, *args))


for _name in ("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "pow", "neg"):
    setattr(LinkValues, f"__{_name}__", _operator(f"__{_name}__"))
