"""Everything that a model derives from a plan, made ahead, on the CPU, where batches are made."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar

from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.derive import (
    bag_map,
    bag_sizes,
    edge_index,
    graph_degrees,
    incoming_map,
    kind_lists,
    merged_map,
    multisets,
    pool_map,
    readers,
    readouts,
    row_map,
    sums_map,
)  # fmt: skip
from enfa.plan.identity import row_identities
from enfa.plan.table import Links, Plan, Readout

__all__ = ["LINKS", "Needs", "lean", "prepare"]

T = TypeVar("T", bound=Arrays)

# what a conv may read of its links
LINKS = ("merged", "merged kinds", "kinds", "incoming", "own", "edge_index", "edges")


@dataclass(frozen=True)
class Needs:
    """What a model reads of a plan beside its arrays: ``model.needs``."""

    links: frozenset[str]  # by the convs of the layers; names from LINKS
    context_links: frozenset[str] = frozenset()
    pool: str = "sum"  # the readout
    tables: bool = False  # whether it pools every table, or the last only
    previous: bool = False  # whether rows are added to their own rows one layer earlier
    identities: bool = False  # whether dropout asks who rows are


def _links(links: Links, rows: int, kinds: int, reads: frozenset[str]) -> None:
    if "merged" in reads:
        merged_map(links, rows)
    if "merged kinds" in reads:
        merged_map(links, rows, kinds=True)
    if "kinds" in reads:
        kind_lists(links, kinds)
    if "incoming" in reads:
        incoming_map(links, rows)
    if "own" in reads:
        readers(links.self_row, rows, links.cache, "self")
    if "edge_index" in reads:
        edge_index(links)
    if "edges" in reads:
        readers(links.in_edge, kinds, links.cache, "edge")


def _readout(readout: Readout, rows: int, num_graphs: int, pool: str) -> None:
    if pool == "root" and readout.root_row is not None:
        readers(readout.root_row.reshape(-1), rows, readout.cache, "root")
    elif pool == "node" and readout.nodes is not None:
        sums_map(readout.nodes, rows)
        bag_sizes(readout.nodes)
    elif pool == "max":
        sums = multisets(readout, rows, num_graphs)
        readers(sums.row, rows, sums.cache, "readers")
    else:
        row_map(readout, rows, num_graphs)


def prepare(plan: Plan, needs: Needs) -> Plan:
    """Derive what a model will ask for, so that nothing is sorted or counted on a device. Changes the plan's cache.

    Needs no model and no GPU: the workers of a loader can do it.
    """
    rows, kinds = len(plan.feature), len(plan.edge_mark)
    readers(plan.feature, len(plan.x), plan.cache, "feature")
    for layer in plan.layers:
        before, conv_rows = rows, layer.links.num_rows
        _links(layer.links, before, kinds, needs.links)
        if layer.source is not None:
            readers(layer.source, conv_rows, layer.cache, "source")
        if needs.previous:
            readers(layer.previous, before, layer.cache, "previous")
        if layer.context is not None and layer.context_row is not None:
            sums_map(layer.context.sums, before if plan.spec.context == "input" else conv_rows)
            bag_sizes(layer.context.sums)
            if layer.context.links is not None:
                contexts = len(layer.context.sums.ptr) - 1
                _links(layer.context.links, contexts, kinds, needs.context_links)
                if plan.degree is not None:
                    graph_degrees(layer.context.links, contexts)
            readers(layer.context_row, len(layer.context.copies), layer.cache, "seen")
        rows = layer.num_rows
    tables = readouts(plan) if needs.tables else [plan.readout]
    for readout, layer in zip(reversed(tables), reversed(plan.layers)):
        _readout(readout, layer.num_rows, plan.num_graphs, needs.pool)
    if needs.pool in ("sum", "mean"):
        pool_map(plan.readout, plan.num_graphs)
    bag_map(plan.readout, plan.num_graphs)
    if needs.identities:
        row_identities(plan)
    return plan


def _changed(part: T, **changes: Any) -> T:
    """``dataclasses.replace`` that keeps what was derived."""
    new = replace(part, **changes)
    for f in fields(part):
        if not f.init:
            setattr(new, f.name, getattr(part, f.name))
    return new


def _without(part: T, *names: str) -> T:
    """The same without the values of some arrays: only their shapes."""
    held = {name: getattr(part, name) for name in names}
    return _changed(part, **{k: v.to("meta") for k, v in held.items() if isinstance(v, Tensor)})


def _lean_links(links: Links, reads: frozenset[str], own: bool) -> Links:
    names = ["in_ptr", "in_row"]
    if "edges" not in reads:
        names.append("in_edge")
    if not own and "own" not in reads:
        names.append("self_row")
    return _without(links, *names)


def lean(plan: Plan, needs: Needs) -> Plan:
    """A prepared plan without the arrays that what was derived from them has replaced: half the bytes to move.

    They keep their shapes and lose their values, so the result runs a model with these needs and nothing else.
    """
    own = needs.previous or plan.degree is not None
    done: dict[int, Links] = {}

    def links_of(links: Links, reads: frozenset[str]) -> Links:
        if id(links) not in done:
            done[id(links)] = _lean_links(links, reads, own)
        return done[id(links)]

    def readout_of(readout: Readout) -> Readout:
        keep = {"delta": _without(readout.delta, "ptr", "row", "count")}
        return _without(_changed(readout, **keep), "base_row", "base_graph", "sub_delta", "sub_graph", "sub_base")

    layers = []
    for layer in plan.layers:
        context = layer.context
        if context is not None:
            of_context = None if context.links is None else links_of(context.links, needs.context_links)
            context = replace(context, sums=_without(context.sums, "ptr", "row", "count"), links=of_context)
        layers.append(_changed(layer, links=links_of(layer.links, needs.links), context=context))
    new = _changed(plan, layers=layers, readout=readout_of(plan.readout))
    if "readouts" in new.cache:
        tables = [readout_of(r) for r in new.cache["readouts"][:-1]]
        new.cache = {**new.cache, "readouts": [*tables, new.readout]}
    return new
