"""What a model reads of a plan, made ahead on the CPU, where batches are made; and the plan without what nothing reads then."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any, TypeVar

from torch import Tensor

from enfa.plan.arrays import Arrays
from enfa.plan.derived.maps import sums_map
from enfa.plan.derived.needs import ARRAYS, PLAN, derive
from enfa.plan.table import Plan, Table

__all__ = ["Needs", "lean", "prepare"]

Needs = Iterable[tuple[int, str]]  # ``Program.needs``
T = TypeVar("T", bound=Arrays)
P = TypeVar("P", bound=Plan)
_LINKS = ("self_row", "in_ptr", "in_row", "in_edge")
_SUMS = ("ptr", "row", "count")
_KEPT = {"readers": "own", "places": "place"}  # where these are kept, if not under their own names


def prepare(plan: P, needs: Needs) -> P:
    """Derive what a model needs, so that nothing is sorted or counted on a device. Changes the plan's caches.

    Needs no model and no GPU: the workers of a loader can do it.
    """
    for number, name in sorted(needs):
        if name not in ARRAYS:
            derive(plan, number, name)
            if name.startswith("lowered ") and (parts := plan.tables[number].parts) is not None:
                sums_map(parts, len(plan.tables[number].sums.ptr) - 1)  # type: ignore[union-attr]
    return plan


def _without(part: T, names: Iterable[str], cache: dict[str, Any]) -> T:
    """The same without the values of some arrays, only their shapes; and with nothing else derived from it than ``cache``."""
    held = {name: getattr(part, name) for name in names}
    new = part.changed(**{name: array.to("meta") for name, array in held.items() if isinstance(array, Tensor)})
    new.cache = cache  # type: ignore[attr-defined]
    return new


def _table(table: Table, names: set[str], counted: bool) -> Table:
    """``names``: what is needed of it."""
    cache = {}
    for name in names:
        found: Any = table.cache.get(_KEPT.get(name, name))
        if name.startswith("lowered "):
            found = _without(found, _SUMS, {"sum": found.cache["sum"]})
        if found is not None:
            cache[_KEPT.get(name, name)] = found
    unread = [name for name in ("own", "other", "place") if name not in names]
    new = _without(table, unread if counted else [*unread, "copies"], cache)
    if table.links is not None:
        derived = {name: value for name, value in table.links.cache.items() if name in names}
        # messages that pad others need the number of rows
        read = names if counted or "edge_index" not in names else {*names, "in_ptr"}
        new.links = _without(table.links, [name for name in _LINKS if name not in read], derived)
    pooled = "sum" in names or any(name.startswith("lowered ") for name in names)
    for name in ("sums", "parts"):
        sums = getattr(table, name)
        if sums is not None:
            derived = {"sum": sums.cache["sum"]} if pooled and "sum" in sums.cache else {}
            setattr(new, name, _without(sums, _SUMS, derived))
    return new


def lean(plan: P, needs: Needs) -> P:
    """A prepared plan without the arrays that nothing reads any more: half the bytes to move.

    They keep their shapes and lose their values, so the result runs a model with these needs and nothing else.
    """
    names: defaultdict[int, set[str]] = defaultdict(set)
    for number, name in needs:
        names[number].add(name)
    tables = {id(table): table for table in plan.tables}
    read: defaultdict[int, set[str]] = defaultdict(set)
    for number, table in enumerate(plan.tables):
        read[id(table)] |= names[number]
    leaner = {key: _table(table, read[key], plan.program.counted) for key, table in tables.items()}
    ways = [(number, int(name[4:])) for number, of in names.items() for name in of if name.startswith("way ")]
    apart = [f"{begin} {end}" for begin, end in ways if not plan.numbered_alike(begin, end)]
    keys = [f"{part} {way}" for way in apart for part in ("found", "way")] + sorted(names[PLAN])
    keys += [f"identity {number}" for number, of in sorted(names.items()) if "identity" in of]
    new = plan.changed(tables=[leaner[id(table)] for table in plan.tables])
    new.cache = {key: plan.cache[key] for key in keys}
    return new
