"""One round of messages: the rows that a conv sends and receives, as plain tensors, along the links of a step."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as _of_all
from torch_geometric.nn import FastRGCNConv, GINConv, GraphConv, MessagePassing, SAGEConv
from torch_geometric.nn.aggr import MeanAggregation, SumAggregation

from enfa.nn.bag.edges import EdgeList, LinkValues
from enfa.nn.bag.trial.alone import compare_alone, on_edges, rows_of
from enfa.nn.bag.trial.kept import not_kept
from enfa.nn.ops.segment import gather, link_sum
from enfa.nn.rowwise.messages import Watch
from enfa.nn.rowwise.rows import EDGES, RowCount, Rows
from enfa.plan.derived.maps import edge_index
from enfa.plan.step import Step

if TYPE_CHECKING:
    from enfa.nn.bag.bag import Bag

__all__ = ["Round", "pass_messages", "update_edges"]

_PLAIN = (GINConv, GraphConv, SAGEConv)  # their messages are rows as they are
_NUMBERS = {"edge_index", "edge_index_j", "adj_t", "size", "size_j"}  # what tells which number a row has


class Round:
    """The links of one step, and whatever is asked at their ends."""

    def __init__(self, bag: Bag, edges: EdgeList, read: int, number: int) -> None:
        links = bag.tables[number].links
        assert links is not None
        self.bag, self.edges, self.read, self.number, self.links = bag, edges, read, number, links

    @cached_property
    def chosen(self) -> Tensor | None:
        """The numbers of the messages that there are; None for all."""
        if self.edges.mask is None:
            return None
        self.bag.need(self.number, "in_edge")
        return self.edges.mask.value[self.links.in_edge.long()].nonzero()[:, 0]

    @cached_property
    def ends(self) -> Tensor:
        """int64 [2, messages]: the rows that they come from, and those that they go to."""
        self.bag.need(self.number, "edge_index")
        found, own = edge_index(self.links), self.links.self_row
        if self.chosen is not None:
            found = found[:, self.chosen]
        if self.edges.loops:
            self.bag.need(self.number, "self_row")
            found = torch.cat([found, torch.stack([own.long(), torch.arange(len(own), device=self.bag.device)])], 1)
        return found

    @property
    def degrees(self) -> Tensor:
        """How many messages each row gets, without added loops."""
        self.bag.need(self.number, "in_ptr")
        return self.links.in_ptr.diff()

    @property
    def sizes(self) -> tuple[int, int]:
        return self.bag.num_rows(self.read), self.links.num_rows

    def watch(self, conv: MessagePassing) -> Watch:
        return Watch(type(conv).__name__, (self.ends.shape[1], *self.sizes))

    def rows(self, value: Rows, source: bool) -> Tensor:
        """The values of the rows read, or of those that read them."""
        return self.bag.moved(value, self.read if source else self.number)

    def at(self, value: Rows, source: bool) -> Tensor:
        """At the source of every link, or at its target."""
        return self.rows(value, source).index_select(0, self.ends[0 if source else 1])

    def on_links(self, value: Any) -> Tensor:
        """On every link but added loops."""
        if isinstance(value, LinkValues):
            return value.make(self)
        self.bag.need(self.number, "in_edge", "edge")
        found = gather(value.value, self.links.in_edge, self.links.cache, "edge")
        return found if self.chosen is None else found[self.chosen]

    def on_all(self, value: Any, name: str) -> Tensor:
        """On every link."""
        if self.edges.loops and not getattr(value, "loops", False):
            raise TypeError(f"Expected {name} to have values for the self-loops that the conv has added, got none")
        if getattr(value, "loops", False) and not self.edges.loops:
            raise TypeError(f"Expected {name} without values for self-loops, which these edges do not have, got some")
        return self.on_links(value)


def _reads_edges(value: Any) -> bool:
    return value.edges if isinstance(value, LinkValues) else isinstance(value, Rows) and value.number == EDGES


def _open(edges: EdgeList, arguments: dict[str, Any], name: str) -> Round:
    """The step that a round of messages asks for."""
    rows = [found for value in arguments.values() for found in rows_of(value)]
    if not rows:
        raise TypeError(f"Expected {name} to pass messages of Rows, got none")
    bag = edges.bag
    like = bag.common(rows, name)
    kinds = edges.mask is not None or any(_reads_edges(value) for value in arguments.values())
    return Round(bag, edges, like.number, bag.step(Step("propagate", like.kind, (like.number,), kinds, edges.along)))


def _parameters(conv: MessagePassing, *functions: str) -> set[str]:
    return {name for f in functions for name in conv.inspector.get_param_names(f)}


def _plain(conv: MessagePassing, rounds: Round, arguments: dict[str, Any], functions: tuple[str, ...]) -> dict[str, Any]:
    """The arguments as tensors: of nodes as (sources, targets), of edges one for each link."""
    name, read = type(conv).__name__, _parameters(conv, *functions)
    told = read & _NUMBERS
    # of which FastRGCNConv makes use where it is given no features
    if told and not (type(conv) is FastRGCNConv and arguments["x"].is_floating_point()):
        raise TypeError(f"{name} reads {sorted(told)[0]} in its messages: which number a row has depends on the plan")
    plain = {}
    for key, value in arguments.items():
        if isinstance(value, RowCount):
            raise TypeError(
                f"{name} gives its messages {key}, a number of rows, which depends on the plan: leave it away, or pool with "
                f"'mean' where it was to divide by"
            )
        if on_edges(value):
            plain[key] = rounds.on_all(value, key)
        elif not rows_of(value):
            if isinstance(value, Tensor) and {f"{key}_i", f"{key}_j"} & read:
                raise TypeError(f"Expected {key} of {name} to be Rows, got a tensor {list(value.shape)}")
            plain[key] = value
        else:
            plain[key] = _both(conv, rounds, key, value, read)
    return plain


def _both(conv: MessagePassing, rounds: Round, key: str, value: Any, read: set[str]) -> Any:
    ends = value if isinstance(value, (tuple, list)) else (value, value)
    if len(ends) != 2 or not all(end is None or isinstance(end, Rows) for end in ends):
        raise TypeError(f"Expected {key} of {type(conv).__name__} to be Rows or two of them, got {value!r}")
    if key in read:  # not by edge: of the receiving nodes, where no message can mistake it for the sending ones
        if key in _parameters(conv, "message", "edge_update") or not isinstance(value, Rows) or {f"{key}_i", f"{key}_j"} & read:
            raise TypeError(
                f"{type(conv).__name__} reads {key} in its messages, all rows at once; {key}_i and {key}_j are the rows at "
                f"both ends of an edge"
            )
        return rounds.rows(value, False)
    return tuple(None if end is None else rounds.rows(end, source) for end, source in zip(ends, (True, False)))


def pass_messages(conv: MessagePassing, view: MessagePassing, edges: Any, arguments: dict[str, Any]) -> Rows:
    """``conv.propagate``: a step of the program."""
    rounds = _open(_checked(conv, edges), arguments, type(conv).__name__)
    plain = _plain(conv, rounds, arguments, ("message", "aggregate", "update"))
    found = None if edges.loops or edges.mask is not None else _sum_of_messages(conv, plain, rounds)
    if found is None:

        def run(one: Any, ends: Tensor, size: tuple[int, int], given: dict[str, Any]) -> Any:
            with rounds.watch(conv):
                return type(conv).propagate(one, ends, size=size, **given)

        if rounds.bag.tracing:
            with not_kept(view):
                found = run(view, rounds.ends, rounds.sizes, plain)
                compare_alone(view, run, rounds, arguments, plain, found, False)
        else:
            found = run(view, rounds.ends, rounds.sizes, plain)
    if not isinstance(found, Tensor) or found.ndim == 0 or len(found) != rounds.links.num_rows:
        name, got = type(conv).__name__, type(found).__name__
        if any(isinstance(value, Rows) and value.number == EDGES and value.ndim > 2 for value in arguments.values()):
            got += ": edge attributes have columns, which an embedding gives axes of their own: embed edge_attr.squeeze(-1)"
        raise TypeError(f"Expected the messages of {name} to end in a row for every node, got {got}")
    return Rows(found, rounds.bag, rounds.number)


def update_edges(conv: MessagePassing, view: MessagePassing, edges: Any, arguments: dict[str, Any]) -> LinkValues:
    """``conv.edge_updater``: computed in the round of messages that reads it."""
    _checked(conv, edges)

    def make(rounds: Round) -> Tensor:
        plain = _plain(conv, rounds, arguments, ("edge_update",))

        def run(one: Any, ends: Tensor, size: tuple[int, int], given: dict[str, Any]) -> Any:
            with rounds.watch(conv):
                return type(conv).edge_updater(one, ends, size=size, **given)

        if not rounds.bag.tracing:
            return run(view, rounds.ends, rounds.sizes, plain)
        with not_kept(view):
            found = run(view, rounds.ends, rounds.sizes, plain)
            compare_alone(view, run, rounds, arguments, plain, found, True)
        return found

    rows = tuple(found for value in arguments.values() for found in rows_of(value))
    return LinkValues(rows, any(_reads_edges(value) for value in arguments.values()), edges.loops, make)


def _checked(conv: nn.Module, edges: Any) -> EdgeList:
    if not isinstance(edges, EdgeList):
        raise TypeError(f"Expected {type(conv).__name__} to pass messages along the edges it was given, got others")
    return edges


_HOOKS = ("_propagate_forward", "_message_forward", "_aggregate_forward", "_message_and_aggregate_forward")
_MODULE_HOOKS = ("_forward_pre_hooks", "_forward_hooks", "_backward_pre_hooks", "_backward_hooks")


def _changed(conv: MessagePassing) -> bool:
    """Whether hooks, or methods of this very conv or its aggregation, do something else than its class."""
    hooks = [getattr(conv, f"{name}{kind}", None) for name in _HOOKS for kind in ("_pre_hooks", "_hooks")]
    aggregation = conv.aggr_module
    if aggregation is None:  # it has a method of its own for it
        return True
    hooks += [getattr(aggregation, name) for name in _MODULE_HOOKS]
    for name in _MODULE_HOOKS:  # tracing has one of its own, which changes nothing
        of_all = getattr(_of_all, f"_global{name}").values()
        hooks += [hook for hook in of_all if getattr(hook, "__module__", "") != "enfa.nn.bag.trace"]
    own = ("message", "aggregate", "update", "message_and_aggregate", "propagate")
    return any(hooks) or any(name in vars(conv) for name in own) or "forward" in vars(aggregation)


def _sum_of_messages(conv: MessagePassing, given: dict[str, Any], rounds: Round) -> Tensor | None:
    """Sums and means of the rows themselves, without writing a message down; None where messages are something else."""
    if type(conv) not in _PLAIN or conv.explain or _changed(conv):
        return None
    if type(conv.aggr_module) not in (SumAggregation, MeanAggregation) or set(given) - {"x", "edge_weight"}:
        return None
    if given.get("edge_weight") is not None or not isinstance(given["x"][0], Tensor) or given["x"][0].ndim != 2:
        return None
    rounds.bag.need(rounds.number, "incoming")
    total = link_sum(given["x"][0], rounds.links)
    if type(conv.aggr_module) is SumAggregation:
        return total
    return total / rounds.degrees.clamp(min=1).to(total.dtype)[:, None]
