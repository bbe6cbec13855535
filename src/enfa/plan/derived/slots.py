"""What the length of every array of a prepared, lean plan means, and what stands in the part that pads it.

Padding rows count nothing (``copies`` 0), read nothing but padding and are read by padding only, so their gradients are exactly
zero and nothing real changes. They begin with the features of some real row, so that a function that is not defined everywhere
meets there what it meets elsewhere. Padding entries of lists stand behind the end of the last list. Tables of graphs are not
padded: batches that differ in their number of graphs are different batches.
"""

from dataclasses import dataclass
from typing import Any

from torch import Tensor

from enfa.plan.derived.order import Lists, SparseMap
from enfa.plan.links import Links, Sums
from enfa.plan.table import Plan, Table

__all__ = ["END", "Slot", "map_sizes", "slots_of"]

END = "end"  # fill: the last value again, as in pointers
Fill = int | str | tuple[str, ...]  # a value, END, or "last x": the last of the rows that size x counts


@dataclass(frozen=True)
class Slot:
    """One array: its axis ``axis`` is as long as the size ``size`` and ``more``; None: the same in all batches."""

    size: str | None
    fill: Fill = 0  # a tuple: one for each row of a matrix
    more: int = 0
    axis: int = 0


def _last(size: str | None) -> Fill:
    return 0 if size is None else f"last {size}"


def rows_of(plan: Plan, number: int) -> str | None:
    """The size that counts the rows of a step; the same for steps that number their rows alike."""
    if plan.program.steps[number].kind == "graphs":
        return None
    return f"rows {next(n for n in range(number + 1) if plan.numbered_alike(n, number))}"


def map_sizes(plan: Plan, number: int, name: str) -> tuple[str | None, str, str | None]:
    """The sizes of a map of a step: how many lists, how many entries, and how many rows of what is read."""
    here, table = rows_of(plan, number), plan.tables[number]
    lists = here if table.parts is None else f"lists {number}"
    if name == "parts":
        return here, f"parts {number}", lists
    if name.startswith("lowered "):
        below = int(name.split()[1])
        return lists, f"{name} of {number}", rows_of(plan, below)
    read = rows_of(plan, plan.program.steps[number].reads[0])
    if name == "sum":
        return lists, f"list entries {number}", read
    return here, f"{'messages' if name == 'incoming' else 'merged'} {number}", read


class _Walk:
    """Notes a slot for every tensor, by its ``id``."""

    def __init__(self, plan: Plan) -> None:
        self.plan, self.slots = plan, dict[int, Slot]()

    def put(self, tensor: Tensor | None, size: str | None, fill: Fill = 0, **more: Any) -> None:
        if tensor is not None:
            self.slots[id(tensor)] = Slot(size, fill, **more)

    def lists(self, lists: Lists, count: str | None, entries: str, read: str | None, name: str) -> None:
        """``count`` lists of ``entries`` in all, which name rows of ``read``."""
        self.put(lists.ptr, count, END, more=1)
        self.put(lists.index, entries, _last(read))
        self.put(lists.weight, entries)
        self.put(lists.other, entries, -1)
        # pieces from 0 to 0, of list 0: nothing is added to it
        self.put(lists.extra, f"{name} pieces", axis=1)
        self.put(lists.long, f"{name} long", axis=1)

    def both(self, found: SparseMap, count: str | None, entries: str, read: str | None, name: str) -> None:
        self.lists(found.forward, count, entries, read, f"{name} forward")
        self.lists(found.backward, read, entries, count, f"{name} backward")

    def map(self, found: SparseMap, number: int, name: str) -> None:
        self.both(found, *map_sizes(self.plan, number, name), f"{name} {number}")

    def links(self, links: Links, number: int, rows: str, read: str) -> None:
        messages, cache = f"messages {number}", links.cache
        self.put(links.self_row, rows, _last(read))
        self.put(links.in_ptr, rows, END, more=1)
        self.put(links.in_row, messages, _last(read))
        self.put(links.in_edge, messages)
        self.put(cache.get("edge_index"), messages, (f"last {read}", f"last {rows}"), axis=1)
        for name in ("merged", "merged kinds", "incoming"):
            if name in cache:
                self.map(cache[name], number, name)
        for name, count, entries, to in (
            ("self", read, rows, rows), ("in", read, messages, messages), ("edge", None, messages, messages),
        ):  # fmt: skip
            if name in cache:
                self.lists(cache[name], count, entries, to, f"{name} {number}")
        if "kinds" in cache:
            kinds: Lists = cache["kinds"]
            self.lists(kinds, None, messages, rows, f"kinds {number}")
            self.put(kinds.other, messages, _last(read))
            self.put(kinds.long, None)

    def sums(self, sums: Sums, number: int, name: str) -> None:
        lists, entries, read = map_sizes(self.plan, number, name)
        self.put(sums.ptr, lists, END, more=1)
        self.put(sums.row, entries, _last(read))
        self.put(sums.count, entries)
        if "sum" in sums.cache:
            self.map(sums.cache["sum"], number, name)

    def table(self, table: Table, number: int) -> None:
        step, rows = self.plan.program.steps[number], rows_of(self.plan, number)
        read = [rows_of(self.plan, r) for r in step.reads]
        self.put(table.copies, rows)
        for index, size in zip((table.own, table.other), read):
            self.put(index, rows, _last(size))
        self.put(table.place, step.kind, _last(rows))
        if table.links is not None:
            assert rows is not None and read[0] is not None
            self.links(table.links, number, rows, read[0])
        for name, sums in (("sum", table.sums), ("parts", table.parts)):
            if sums is not None:
                self.sums(sums, number, name)
        for name, found in table.cache.items():
            self.cached(name, found, number, rows, read)

    def cached(self, name: str, found: Any, number: int, rows: str | None, read: list[str | None]) -> None:
        if name == "sizes":
            self.put(found, rows, 1)
        elif name in ("own", "place"):
            entries = rows if name == "own" else self.plan.program.steps[number].kind
            assert entries is not None
            self.lists(found, read[0] if name == "own" else rows, entries, entries, f"{name} {number}")
        elif name == "written out":
            entries = f"written out {number}"
            self.put(found.ptr, rows, END, more=1)
            self.put(found.row, entries, _last(read[0]))
            self.put(found.count, entries, 1)
            self.lists(found.cache["readers"], read[0], entries, entries, entries)
        elif name.startswith("lowered "):
            self.sums(found, number, name)


def slots_of(plan: Plan) -> dict[int, Slot]:
    """For every tensor of a prepared, lean plan, by its ``id``, how it is padded."""
    walk = _Walk(plan)
    for tensor in (plan.mark_rows, plan.edge_rows, plan.edge_mark_rows, plan.y, plan.graph_ids, *plan.graph_attr.values()):
        walk.put(tensor, None)
    walk.put(plan.x_rows, "features", END)
    walk.put(plan.feature, "rows 0", _last("features"))
    for tensor in (plan.marked, plan.degrees):
        walk.put(tensor, "rows 0", END)
    walk.put(plan.of_graph, "rows 0")
    walk.put(plan.root_nodes, "subgraphs", -1)
    for number, table in enumerate(plan.tables):
        walk.table(table, number)
    for key, found in plan.cache.items():
        kind, *numbers = key.split()
        if key == "real":
            walk.put(found, None)
        if key in ("feature", "of_graph"):
            walk.lists(found, "features" if key == "feature" else None, "rows 0", "rows 0", key)
        elif kind == "identity":
            walk.put(found, rows_of(plan, int(numbers[0])))
        elif kind in ("found", "way") and found is not None:
            rows, read = (rows_of(plan, int(number)) for number in numbers)
            assert rows is not None
            if kind == "found":
                walk.put(found, rows, _last(read))
            else:
                walk.lists(found, read, rows, rows, key)
    return walk.slots
