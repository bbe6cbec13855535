"""Batches written straight into blocks.

Preparing a plan and copying it into a block touches everything twice and makes hundreds of small arrays, which costs a worker
as much as the lists themselves. The maps that make up nearly all of a block are therefore transposed inside it; whatever else
a model needs is prepared and copied. The bytes are the same, which tests compare.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from enfa.batch.static.padding import Bucket, Form
from enfa.plan.arrays import Places
from enfa.plan.derived._fill import fill_kinds, fill_map
from enfa.plan.derived._order import merge_own
from enfa.plan.derived.maps import KIND_CHUNK
from enfa.plan.derived.order import CHUNK, Lists
from enfa.plan.derived.prepare import Needs, prepare
from enfa.plan.derived.slots import map_sizes
from enfa.plan.links import Sums
from enfa.plan.table import Plan

__all__ = ["Block", "Filler"]

Key = tuple[int, str]  # number of a step, name of one of its maps
_LINKS = ("merged", "merged kinds", "kinds")


def _maps(plan: Plan, number: int, name: str) -> dict[str, Any]:
    """What a prepared plan has of a need that is written straight into blocks, by name; else nothing."""
    table = plan.tables[number] if number >= 0 else None
    if table is None:
        return {}
    if name in _LINKS:
        assert table.links is not None
        return {name: table.links.cache[name]} if name in table.links.cache else {}
    if name != "sum" and not name.startswith("lowered "):
        return {}
    sums: Any = table.sums if name == "sum" else table.cache[name]
    found = {name: sums.cache["sum"]}
    return found if table.parts is None else found | {"parts": table.parts.cache["sum"]}


def _sums(plan: Plan, number: int, name: str) -> Sums:
    table = plan.tables[number]
    if name.startswith("lowered "):
        from enfa.plan.derived.lowered import lowered

        return lowered(plan, number, int(name.split()[1]))
    found = table.parts if name == "parts" else table.sums
    assert found is not None
    return found


@dataclass(frozen=True)
class Block:
    """What :func:`fill_map` writes of each map: the arrays of its forward and of its backward lists."""

    bucket: Bucket
    arrays: list[np.ndarray]
    maps: dict[Key, list[Any]]


class Filler:
    """Writes plans of one form into blocks. Keeps scratch: every process has its own."""

    def __init__(self, form: Form, needs: Needs) -> None:
        plan, self.form = form.plan, form
        number = {id(t): k for k, t in enumerate(plan.tensors())}

        def places(lists: Lists) -> list[int | None]:
            """Which arrays of a block are its own."""
            held = (lists.ptr, lists.index, lists.weight, lists.other, lists.extra, lists.long)
            return [None if t is None else number.pop(id(t)) for t in held]

        maps = {(n, part): found for n, name in sorted(needs) for part, found in _maps(plan, n, name).items()}
        last = {id(found): key for key, found in maps.items()}
        maps = {key: found for key, found in maps.items() if last[id(found)] == key}
        self._maps = {key: (places(m.forward), places(m.backward)) for key, m in maps.items() if key[1] != "kinds"}
        self._kinds = {key: places(lists) for key, lists in maps.items() if key[1] == "kinds"}
        # a table that several steps share has sizes named after the last, whether that one reads the map or not
        of_table = {id(table): n for n, table in enumerate(plan.tables)}
        self._sizes = {(n, name): map_sizes(plan, of_table[id(plan.tables[n])], name) for n, name in self._maps}
        # "kinds" of few kinds are made by neither
        self._needs = [need for need in needs if need[1] != "kinds" and not _maps(plan, *need)]
        self._rest, self._rest_of = list(number.values()), Places(plan, set(number))
        rest = {k: place for place, k in enumerate(self._rest)}
        # by name, the array copied that has this size: its place among them, axis, and how much longer it is
        self._copied = {
            name: (rest[k], axis, more) for name, (k, axis, more) in zip(form.names, form.where) if k in rest
        }  # fmt: skip
        self._of = np.empty(0, np.int32)

    def block(self, bucket: Bucket, arrays: list[np.ndarray]) -> Block:
        """A bucket's arrays in some block, put together as they will be written."""

        def lists(places: list[int | None]) -> list[Any]:
            """The arrays of some lists, and what pads their index."""
            return [*(None if k is None else arrays[k] for k in places), bucket.parts[places[1] or 0].fill]

        maps = {key: lists(forward) + lists(backward) for key, (forward, backward) in self._maps.items()}
        maps |= {key: [*lists(places), bucket.parts[places[3] or 0].fill] for key, places in self._kinds.items()}
        return Block(bucket, arrays, maps)

    def fill(self, batch: Any, blocks: Iterable[Block]) -> int | None:
        """Write a sliced plan, or a cut, into the first of some blocks that holds it, and say which; None: none does."""
        joins: Mapping[Key, Any] = {}
        if not isinstance(batch, Plan):
            batch, joins = batch.plan, batch.joins
        plan = prepare(batch, self._needs)
        rest = self._rest_of.tensors(plan)
        if rest is None:
            return None
        sizes = self._counted(plan, joins)
        sizes |= {name: rest[k].shape[axis] - more for name, (k, axis, more) in self._copied.items()}
        # the number of pieces of long lists is known when they have been transposed
        known = np.array([name in sizes for name in self.form.names])
        least = self.form.with_spare([sizes.get(name, 0) for name in self.form.names])
        room = max(sizes.values()) + 8
        if len(self._of) < room:
            self._of = np.empty(room, np.int32)
        for n, block in enumerate(blocks):
            parts = block.bucket.parts
            holds = (least <= block.bucket.sizes)[known].all() and all(parts[k].holds(t) for k, t in zip(self._rest, rest))
            if holds and self._write(plan, joins, sizes, block):
                block.bucket.write(rest, block.arrays, self._rest)
                return n
        return None

    def _counted(self, plan: Plan, joins: Mapping[Key, Any]) -> dict[str, int]:
        """By name, what is known of the maps of a plan before they are made."""
        sizes: dict[str, int] = {}
        for n, table in enumerate(plan.tables):
            sizes[f"rows {n}"] = plan.num_rows(n) if table.copies is None else len(table.copies)
            if table.links is not None:
                sizes[f"messages {n}"] = len(table.links.in_row)
            if table.parts is not None and table.sums is not None:
                sizes[f"lists {n}"] = len(table.sums.ptr) - 1
        for (n, name), (_, entries, _) in self._sizes.items():
            if (n, name) in joins:
                sizes[entries] = joins[n, name].entries
                if name.startswith("merged"):
                    sizes[f"messages {n}"] = sizes[entries] - sizes[f"rows {n}"]
            elif name.startswith("merged"):
                sizes[entries] = sizes[f"rows {n}"] + sizes[f"messages {n}"]
            else:
                sizes[entries] = len(_sums(plan, n, name).row)
        return sizes

    def _write(self, plan: Plan, joins: Mapping[Key, Any], sizes: dict[str, int], block: Block) -> bool:
        """The maps of a plan, in both orders. False where there is no room for all pieces of long lists."""
        fits = True
        for key, into in block.maps.items():
            links = plan.tables[key[0]].links
            if key in joins:
                fits &= joins[key].write(self._of, into)
            elif key in self._kinds:
                assert links is not None
                ptr, index, _, *more = into
                raw = [t.numpy() for t in (links.in_ptr, links.in_row, links.in_edge)]
                fits &= fill_kinds(KIND_CHUNK, self._of, *raw, ptr, index, *more)
            else:
                if links is not None:
                    raw = [t.numpy() for t in (links.self_row, links.in_ptr, links.in_row, links.in_edge)]
                    merge_own(*raw, into[0], into[1], into[3])
                elif not _copied(_sums(plan, *key), into):
                    return False
                lists, entries, read = (plan.num_graphs if name is None else sizes[name] for name in self._sizes[key])
                fits &= fill_map(lists, entries, read, CHUNK, self._of, *into)
        return fits


def _copied(sums: Sums, into: list[Any]) -> bool:
    """Whether the lists of some sums have the types of a block's, and stand there now."""
    for array, out in zip((sums.ptr.numpy(), sums.row.numpy(), sums.count.numpy()), into):
        if array.dtype != out.dtype:
            return False
        out[: len(array)] = array
    return True
