"""What the length of every array of a prepared, lean plan means, and what stands in the part that pads it.

Padding rows count nothing (``copies`` 0), read nothing and are read by padding only, so their gradients are exactly
zero and nothing real changes. Padding entries of lists stand behind the end of the last list, where nobody looks.
"""

from __future__ import annotations

from torch import Tensor

from enfa.plan.order import Lists
from enfa.plan.steps.slots import END, Slot, SlotWalk, last
from enfa.plan.table import Context, Layer, Links, Plan, Readout

__all__ = ["slots_of"]


class _Walk(SlotWalk):
    def links(self, links: Links, rows: str, before: str, name: str) -> None:
        messages, merged, cache = f"{name} messages", f"{name} merged", links.cache
        self.put(links.self_row, rows, last(before))
        self.put(links.in_ptr, rows, END, more=1)
        self.put(links.in_row, messages, last(before))
        self.put(links.in_edge, messages)
        self.put(cache.get("targets"), messages, last(rows))
        self.put(cache.get("edge_index"), messages, (f"last {before}", f"last {rows}"), axis=1)
        for key in ("merged", "merged kinds"):
            if key in cache:
                self.both(cache[key], rows, merged, before, f"{name} {key}")
        if "incoming" in cache:
            self.both(cache["incoming"], rows, messages, before, f"{name} incoming")
        if "self" in cache:
            self.lists(cache["self"], before, rows, rows, f"{name} self")
        if "edge" in cache:
            self.lists(cache["edge"], None, messages, None, f"{name} edge")
        if "kinds" in cache:
            kinds: Lists = cache["kinds"]
            self.lists(kinds, None, messages, rows, f"{name} kinds")
            self.put(kinds.other, messages, last(before))
            self.put(kinds.long, None)
        for tensor, size in zip(cache.get("degrees", ()), (before, rows)):
            self.put(tensor, size)

    def context(self, context: Context, read: str, name: str) -> str:
        """Returns what its encoded rows are counted by."""
        sums, entries = context.sums, f"{name} sums"
        rows = name if context.links is None else f"{name} encoded"
        self.put(sums.ptr, name, END, more=1)
        self.put(sums.row, entries)
        self.put(sums.count, entries)
        self.both(sums.cache["sum"], name, entries, read, entries)
        self.put(sums.cache.get("sizes"), name, 1)
        if context.links is not None:
            self.links(context.links, rows, name, rows)
        self.put(context.copies, rows)
        return rows

    def layer(self, layer: Layer, i: int, context_input: bool, identities: tuple[Tensor, ...]) -> str:
        before, rows, table = f"rows {i}", f"conv rows {i + 1}", f"rows {i + 1}"
        if layer.source is None:
            rows = table
        self.links(layer.links, rows, before, rows)
        self.put(layer.copies, rows)
        self.put(layer.source, table, last(rows))
        contexts = None
        if layer.context is not None and layer.context_row is not None:
            contexts = self.context(layer.context, before if context_input else rows, f"contexts {i + 1}")
            self.put(layer.context_row, table, last(contexts))
            self.lists(layer.cache["seen"], contexts, table, table, f"{table} seen")
        for key, read in (("source", rows), ("previous", before)):
            if key in layer.cache:
                self.lists(layer.cache[key], read, table, table, f"{table} {key}")
        for tensor, size in zip(identities, (rows, contexts, table)):
            self.put(tensor, size)
        return table

    def readout(self, readout: Readout, table: str) -> None:
        entries, cache = f"{table} pooled", readout.cache
        for tensor in (readout.sub_delta, readout.sub_graph, readout.sub_base):
            self.put(tensor, "subgraphs")
        self.put(readout.sub_size, "subgraphs", 1)
        self.put(readout.base_row, "base rows")
        self.put(readout.base_graph, "base rows")
        self.put(readout.delta.ptr, "deltas", more=1)
        self.put(readout.delta.row, f"{table} deltas")
        self.put(readout.delta.count, f"{table} deltas")
        if "rows" in cache:  # deltas, and base rows of graphs
            self.both(cache["rows"], "sums", entries, table, entries)
        if "multisets" in cache:
            sums = cache["multisets"]
            self.put(sums.ptr, "subgraphs", END, more=1, cover=entries)
            self.put(sums.row, entries, last(table))
            self.put(sums.count, entries, 1)
            self.lists(sums.cache["readers"], table, entries, entries, entries)
        if "pool" in cache:
            self.both(cache["pool"], "subgraphs", "pairs", "sums", "pool")
        if "bag" in cache:
            self.both(cache["bag"], None, "subgraphs", "subgraphs", "bag")


def slots_of(plan: Plan) -> dict[int, Slot]:
    """For every tensor of a prepared plan, by its ``id``, how it is padded."""
    if plan.spec.output != "graph":
        raise ValueError(f"Expected a plan for predictions of graphs to pad, got output={plan.spec.output!r}")
    if "bag" not in plan.readout.cache:
        raise ValueError("Expected a prepared plan to pad: call enfa.plan.prepare first, or give the loader needs")
    walk = _Walk()
    for tensor in (plan.marks, plan.edge_attr, plan.edge_mark, plan.y, plan.graph_ids):
        walk.put(tensor, None)
    walk.put(plan.x, "features")
    walk.put(plan.feature, "rows 0", last("features"))
    for tensor in (plan.mark, plan.degree, plan.graph):
        walk.put(tensor, "rows 0")
    walk.lists(plan.cache["feature"], "features", "rows 0", "rows 0", "features")
    identities = plan.cache.get("identities", [()] * len(plan.layers))
    tables = [
        walk.layer(layer, i, plan.spec.context == "input", identities[i]) for i, layer in enumerate(plan.layers)
    ]
    pooled = plan.cache.get("readouts", [plan.readout])
    for readout, table in zip(reversed(pooled), reversed(tables)):
        walk.readout(readout, table)
    return walk.slots
