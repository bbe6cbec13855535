"""PyG's convs on Rows.

A conv is called with Rows and with links in place of an edge list, of which it can do nothing but pass messages. So everything
outside of message passing acts on Rows, and is exact or refused; in the messages, of which each belongs to one row, the conv's
own code runs on plain tensors.
"""

from __future__ import annotations

import copy
import inspect
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch_geometric.nn import GINConv, GraphConv, MessagePassing, SAGEConv
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation

from enfa.nn.bag.messages import Watch
from enfa.nn.bag.rows import EDGES, Rows
from enfa.nn.convs.exact import check_exact
from enfa.nn.segment import gather, link_sum
from enfa.plan.derive import edge_index
from enfa.plan.table import Links

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["LinkList", "message_pass"]

_PLAIN = (GINConv, GraphConv, SAGEConv)  # their messages are rows as they are


class LinkList:
    """Stands for an edge list: rows of one table as sources, rows of another as targets. Only message passing reads it."""

    def __init__(self, bag: Bag, read: int, number: int, conv: str) -> None:
        self._bag, self._read, self._number, self._conv = bag, read, number, conv

    def __getattr__(self, name: str) -> Any:
        raise TypeError(
            f"{self._conv} reads the edge list by itself ({name}), but rows of two tables have no edge list of one graph: "
            f"only messages (MessagePassing.propagate) know it; degrees and self-loops must be in the graphs"
        )

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        links = next((a for a in args if isinstance(a, LinkList)), None)
        name = "The conv" if links is None else links._conv
        raise TypeError(
            f"{name} reads the edge list by itself ({getattr(func, '__name__', func)}), but rows of two tables have no edge "
            f"list of one graph: only messages (MessagePassing.propagate) know it"
        )


def _takes_pairs(conv: nn.Module) -> bool:
    """Whether a conv takes (sources, targets), by what its signature says of x."""
    x = next(iter(inspect.signature(conv.forward).parameters.values()))
    return "Tuple" in str(x.annotation) or "tuple" in str(x.annotation) or "Pair" in str(x.annotation)


def message_pass(
    conv: nn.Module, h: Rows, bag: Bag, number: int, of_edges: dict[str, Rows], more: dict[str, Any]
) -> Rows:
    """conv(h) over the links of a step."""
    names = list(inspect.signature(conv.forward).parameters) if isinstance(conv, nn.Module) else []
    if not isinstance(conv, MessagePassing) or len(names) < 2:
        raise TypeError(f"Expected a PyG conv (torch_geometric.nn.MessagePassing) to propagate with, got {conv!r}")
    check_exact(conv)
    missing = [name for name in (*of_edges, *more) if name not in names]
    if missing:
        raise TypeError(f"{type(conv).__name__} takes no {missing[0]!r}: its forward takes {', '.join(names)}")
    links = bag.tables[number].links
    assert links is not None
    own = Rows(gather(h.value, links.self_row, links.cache, "self"), bag, number)
    listed = LinkList(bag, h.number, number, type(conv).__name__)
    view = _view(conv, bag, h.number, number)
    given = {name: bag._rows(value.value, EDGES) for name, value in of_edges.items()}
    out = view((h, own) if _takes_pairs(conv) else h, listed, **given, **more)
    if not isinstance(out, Rows):
        raise TypeError(f"Expected {type(conv).__name__} to return rows, got {type(out).__name__}")
    return bag._rows(bag.moved(out, number), number) if out.number != number else out


def _view(conv: MessagePassing, bag: Bag, read: int, number: int) -> MessagePassing:
    """The conv itself, parameters and all, but for its message passing. A new object: other threads may use the conv."""
    view = copy.copy(conv)
    links, messages = bag.tables[number].links, -2 - number
    assert links is not None

    def lifted(value: Any, source: bool) -> Any:
        """What is sent, or received, as a plain tensor."""
        if not isinstance(value, Rows):
            return value
        if value.number == EDGES:
            return gather(value.value, links.in_edge, links.cache, "edge")
        if value.number < 0:
            if value.number != messages:
                raise TypeError(f"Expected {type(conv).__name__} to use its edge_updater in the same call, got other messages")
            return value.value
        if source:
            if value.number != read:
                return bag.moved(value, read)
            return value.value
        if value.number == read:
            return gather(value.value, links.self_row, links.cache, "self")
        return bag.moved(value, number)

    def both(value: Any) -> Any:
        if isinstance(value, tuple) and len(value) == 2 and any(isinstance(v, Rows) for v in value):
            return lifted(value[0], True), lifted(value[1], False)
        if isinstance(value, Rows) and value.number == number:
            return None, value.value  # of those who receive, such as the queries of an attention: nobody sends it
        if isinstance(value, Rows) and value.number >= 0:
            return lifted(value, True), lifted(value, False)
        return lifted(value, True)

    def run(name: str, given: LinkList, size: Any, arguments: dict[str, Any]) -> Any:
        if not isinstance(given, LinkList):
            raise TypeError(f"Expected {type(conv).__name__} to pass messages along the edges it was given, got others")
        plain = {key: both(value) for key, value in arguments.items()}
        fast = _sum_of_messages(conv, plain, links) if name == "propagate" else None
        if fast is not None:
            return Rows(fast, bag, number)
        sizes = (bag.tables[read].num_rows, links.num_rows)
        with Watch(type(conv).__name__, (len(links.in_row), *sizes)):
            return getattr(type(conv), name)(view, edge_index(links), size=sizes, **plain)

    def propagate(edge_index: Any, size: Any = None, **arguments: Any) -> Rows:
        found = run("propagate", edge_index, size, arguments)
        return found if isinstance(found, Rows) else Rows(found, bag, number)

    def edge_updater(edge_index: Any, size: Any = None, **arguments: Any) -> Rows:
        return Rows(run("edge_updater", edge_index, size, arguments), bag, messages)

    view.propagate, view.edge_updater = propagate, edge_updater  # type: ignore[method-assign]
    return view


def _sum_of_messages(conv: MessagePassing, given: dict[str, Any], links: Links) -> Tensor | None:
    """Sums and means of the rows themselves, without writing a message down; None where messages are something else."""
    if type(conv) not in _PLAIN or conv._message_forward_hooks or conv._propagate_forward_hooks or conv.explain:
        return None
    if type(conv.aggr_module) not in (SumAggregation, MeanAggregation) or set(given) - {"x", "edge_weight"}:
        return None
    if given.get("edge_weight") is not None or not isinstance(given["x"][0], Tensor):
        return None
    total = link_sum(given["x"][0], links)
    if type(conv.aggr_module) is SumAggregation:
        return total
    return total / links.in_ptr.diff().clamp(min=1).to(total.dtype)[:, None]


