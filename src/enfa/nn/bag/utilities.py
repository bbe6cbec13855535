"""PyG's utilities for edge lists and batch vectors, for stand-ins: what convs and models call outside of messages.

Each takes what PyG's function of that name takes, and is that function for anything else than a stand-in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn

import torch
from torch import Tensor
from torch_geometric import utils
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.nn.conv import gcn_conv, rgcn_conv

from enfa.nn.bag.batch import NodeBatch, check_count
from enfa.nn.bag.edges import EdgeEnds, EdgeList, LinkValues, StandIn
from enfa.nn.bag.rounds import Round
from enfa.nn.rowwise.rows import EDGES, Rows

__all__ = ["INSTEAD"]

INSTEAD: dict[Callable, Callable] = {}


def instead_of(*originals: Callable) -> Callable[[Callable], Callable]:
    """Stands for these functions where the first or second argument is a stand-in."""

    def note(function: Callable) -> Callable:
        for original in originals:

            def either(*args: Any, _original: Callable = original, **kwargs: Any) -> Any:
                given = (*args[:2], *kwargs.values())
                ours = any(isinstance(value, (StandIn, EdgeEnds)) for value in given)
                return (function if ours else _original)(*args, **kwargs)

            INSTEAD[original] = either
        return function

    return note


@instead_of(utils.remove_self_loops)
def remove_self_loops(edge_index: EdgeList, edge_attr: Any = None) -> tuple[EdgeList, Any]:
    """There are none: plans for such a model refuse graphs that have them."""
    edge_index.bag.note_loops()
    return edge_index, edge_attr


@instead_of(utils.add_self_loops, utils.add_remaining_self_loops)
def add_self_loops(
    edge_index: EdgeList, edge_attr: Any = None, fill_value: Any = None, num_nodes: Any = None
) -> tuple[EdgeList, Any]:
    """``fill_value``: what loops get as attribute; a number, a tensor, or ``"mean"``, ``"add"`` of the incoming edges'."""
    looped = edge_index.with_loops()
    if edge_attr is None:
        return looped, None
    fill = 1.0 if fill_value is None else fill_value
    if isinstance(fill, str) and fill not in ("mean", "add", "sum"):
        raise TypeError(f"Expected self-loops with a number, 'mean' or 'add' as their attribute, got {fill!r}")
    if isinstance(edge_attr, LinkValues) and edge_attr.loops:
        raise TypeError("Expected self-loops to be added once, got edges that have them already")

    def make(rounds: Round) -> Tensor:
        each = rounds.on_links(edge_attr)
        shape = (rounds.links.num_rows, *each.shape[1:])
        if isinstance(fill, str):
            target = rounds.ends[1, : len(each)]
            own = each.new_zeros(shape).index_add(0, target, each)
            if fill == "mean":
                count = rounds.degrees.clamp(min=1).to(own.dtype)
                own = own / count.view(-1, *([1] * (own.ndim - 1)))
        elif isinstance(fill, Tensor):
            own = fill.to(each).expand(shape)
        else:
            own = each.new_full(shape, fill)
        return torch.cat([each, own])

    rows = edge_attr.rows if isinstance(edge_attr, LinkValues) else ()
    return looped, LinkValues(rows, getattr(edge_attr, "edges", True), True, make)


@instead_of(utils.dropout_edge, utils.dropout_node, utils.dropout_path)
def dropped(edge_index: EdgeList, *_: Any, **__: Any) -> NoReturn:
    raise TypeError(
        "Expected all edges of every subgraph, because copies that share rows would lose different ones, got a dropout of "
        "edges, nodes or paths (dropout_edge, ...): drop between layers instead (F.dropout, torch.nn.Dropout)"
    )


@instead_of(gcn_conv.gcn_norm)
def gcn_norm(
    edge_index: EdgeList,
    edge_weight: Any = None,
    num_nodes: Any = None,
    improved: bool = False,
    add_self_loops: bool = True,
    flow: str = "source_to_target",
    dtype: Any = None,
) -> tuple[EdgeList, LinkValues]:
    """1 / sqrt(degree of the source times degree of the target), times the edge's weight."""
    column = isinstance(edge_weight, Rows) and edge_weight.number == EDGES and edge_weight.ndim == 1
    if edge_weight is not None and not column:
        raise TypeError(f"Expected edge_weight to be a column of edge attributes (bag.edge_attr[:, 0]), got {edge_weight!r}")
    fill = 2.0 if improved and (edge_weight is not None or _improves_without_weights()) else 1.0
    edges = edge_index.with_loops() if add_self_loops else edge_index
    degree = edges.degree(dtype, edge_weight, fill)
    factor = degree.pow(-0.5)
    factor = factor.masked_fill(factor == float("inf"), 0.0)

    def make(rounds: Round) -> Tensor:
        found = rounds.at(factor, True) * rounds.at(factor, False)
        if edge_weight is not None:
            weight = rounds.on_links(edge_weight)
            if edges.loops:
                weight = torch.cat([weight, weight.new_full((rounds.links.num_rows,), fill)])
            return found * weight
        if edges.loops and fill != 1.0:
            found = torch.cat([found[: -rounds.links.num_rows], fill * found[-rounds.links.num_rows :]])
        return found

    return edges, LinkValues((factor,), edge_weight is not None, edges.loops, make)


@cache
def _improves_without_weights() -> bool:
    """PyG's versions differ: some add loops to what has no weights yet, and give all of them 1 afterwards."""
    return float(gcn_conv.gcn_norm(torch.tensor([[0], [1]]), None, 2, improved=True)[1][-1]) > 0.6  # 2/3, or 1/2


@instead_of(utils.degree)
def degree(index: Any, num_nodes: Any = None, dtype: Any = None) -> Rows:
    """Of the nodes that edges lead to. What they come from is listed nowhere."""
    if not isinstance(index, EdgeEnds) or index.source:
        raise TypeError("Expected degree of the targets of edges (edge_index[1]), which rows know, got other numbers")
    return index.edges.degree(dtype)


@instead_of(rgcn_conv.masked_edge_index)
def masked_edge_index(edge_index: EdgeList, edge_mask: Any) -> EdgeList:
    return edge_index.masked(edge_mask)


def _pool(how: str) -> Callable[..., Any]:
    def pool(x: Any, batch: Any, size: Any = None) -> Any:
        check_count("size", size)
        return batch.pooled(x, how)

    return pool


for _original, _how in ((global_add_pool, "sum"), (global_mean_pool, "mean"), (global_max_pool, "max")):
    instead_of(_original)(_pool(_how))


@instead_of(utils.scatter)
def scatter(src: Any, index: Any, dim: int = 0, dim_size: Any = None, reduce: str = "sum") -> Any:
    if not isinstance(index, NodeBatch) or dim not in (0, -2):
        raise TypeError("Expected scatter to pool the nodes of each graph (scatter(x, batch, dim=0)), got other numbers")
    check_count("dim_size", dim_size)
    return index.pooled(src, {"add": "sum"}.get(reduce, reduce))
