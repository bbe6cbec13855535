"""What a model reads of a plan beside its arrays: maps in both orders, readers of rows, sizes of lists.

Everything here is derived once and kept in the cache of the part that it is derived from, under the name that it has here, so a
batch can be made with it (``enfa.plan.derived.prepare``) and moved with it. A program's ``needs`` are pairs of a step's number
and such a name, or the name of one of the table's arrays that the model reads as it is.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from enfa.plan.derived.identity import step_identities
from enfa.plan.derived.maps import edge_index, incoming_map, kind_lists, merged_map, readers, sums_map
from enfa.plan.derived.order import SparseMap
from enfa.plan.links import Links, Sums
from enfa.plan.table import Plan, Table

__all__ = ["ARRAYS", "PLAN", "derive", "list_maps", "way"]

PLAN = -1  # instead of a step's number: what belongs to the plan as a whole
ARRAYS = ("self_row", "in_ptr", "in_row", "in_edge", "own", "other", "place")  # of a table, read as they are


def _links(plan: Plan, number: int) -> Links:
    links = plan.tables[number].links
    assert links is not None
    return links


def _read(plan: Plan, number: int) -> int:
    """How many rows the step has that a step reads first."""
    return plan.num_rows(plan.program.steps[number].reads[0])


def _readers(name: str, key: str, size: Callable[[Plan, int], int]) -> Callable[[Plan, int], Any]:
    """Of each row the places of an array that name it."""

    def make(plan: Plan, number: int) -> Any:
        table = plan.tables[number]
        part: Any = table if hasattr(table, name) else table.links
        return readers(getattr(part, name), size(plan, number), part.cache, key)

    return make


def _kinds(plan: Plan, number: int) -> int:
    return len(plan.edge_mark_rows)


def _rows(plan: Plan, number: int) -> int:
    return plan.num_rows(number)


def list_maps(plan: Plan, number: int) -> list[SparseMap]:
    """The sums of a step, one after the other: rows -> lists (-> subgraphs)."""
    table: Table = plan.tables[number]
    assert table.sums is not None
    found = [sums_map(table.sums, _read(plan, number))]
    if table.parts is not None:
        found.append(sums_map(table.parts, len(table.sums.ptr) - 1))
    return found


def _listed(plan: Plan, number: int) -> Sums:
    from enfa.plan.derived.lists import written_out

    sums = written_out(plan.tables[number], _read(plan, number))
    readers(sums.row, _read(plan, number), sums.cache, "readers")
    return sums


def _sizes(plan: Plan, number: int) -> Tensor:
    from enfa.plan.derived.lists import list_sizes

    return list_sizes(plan.tables[number])


def way(plan: Plan, begin: int, end: int) -> Tensor | None:
    """Of every row of one step the row of the same pair, node or subgraph in an earlier one; None where there is none."""
    name = f"found {begin} {end}"
    if name not in plan.cache:
        path = (plan.program.way(begin, end) if min(begin, end) >= 0 else None) or ()
        found: Tensor | None = None
        for number, side in path:
            if not plan.numbered_alike(number, plan.program.steps[number].reads[side]):
                own = plan.tables[number].parents[side]
                found = own if found is None else own.index_select(0, found)
        if path and found is None:  # 0, 1, 2, …
            found = plan.tables[begin].parents[path[0][1]]
        plan.cache[name] = found
    return plan.cache[name]


def _way(plan: Plan, begin: int, end: int) -> Any:
    if plan.numbered_alike(begin, end):
        return None
    index = way(plan, begin, end)
    assert index is not None
    return readers(index, plan.num_rows(end), plan.cache, f"way {begin} {end}")


def _lowered(plan: Plan, number: int, to: int) -> SparseMap:
    from enfa.plan.derived.lowered import lowered

    return sums_map(lowered(plan, number, to), plan.num_rows(to))


DERIVED: dict[str, Callable[[Plan, int], Any]] = {
    # links
    "merged": lambda plan, n: merged_map(_links(plan, n), _read(plan, n)),
    "merged kinds": lambda plan, n: merged_map(_links(plan, n), _read(plan, n), kinds=True),
    "kinds": lambda plan, n: kind_lists(_links(plan, n), len(plan.edge_mark_rows)),
    "incoming": lambda plan, n: incoming_map(_links(plan, n), _read(plan, n)),
    "edge_index": lambda plan, n: edge_index(_links(plan, n)),
    "self": _readers("self_row", "self", _read),
    "in": _readers("in_row", "in", _read),
    "edge": _readers("in_edge", "edge", _kinds),
    # the rest
    "sum": list_maps,
    "sizes": _sizes,
    "written out": _listed,
    "readers": _readers("own", "own", _read),
    "places": _readers("place", "place", _rows),
    "identity": step_identities,
}  # fmt: skip
_TO = {"way": _way, "lowered": _lowered}  # with the number of another step: "way 2", "lowered 1"


def derive(plan: Plan, number: int, name: str) -> Any:
    """Make one thing that a model needs, unless it is there."""
    if number == PLAN and name == "real":
        if name not in plan.cache:
            plan.cache[name] = torch.tensor([plan.num_rows(n) for n in range(len(plan.tables))], device=plan.device)
        return plan.cache[name]
    if number == PLAN:
        size = len(plan.x_rows) if name == "feature" else plan.num_graphs
        return readers(getattr(plan, name), size, plan.cache, name)
    if name in DERIVED:
        return DERIVED[name](plan, number)
    kind, _, to = name.partition(" ")
    return _TO[kind](plan, number, int(to))
