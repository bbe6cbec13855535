"""The distinct rows of a model with fewer layers: they are there already.

What the rows of table i are does not depend on how many tables follow. Only the readout does: following ``own`` downwards gives
each row's number in an earlier table, and a pool's list of (row, net count) loses the rows that are not affected so early,
because there they cancel against their base rows.
"""

from dataclasses import replace

import numpy as np

from enfa.plan.arrays import tensor
from enfa.plan.derived.maps import lowered
from enfa.plan.keys.intern import KeyTable, packed
from enfa.plan.links import Sums
from enfa.plan.rows.distinct import StepRows
from enfa.plan.step import Program, Step

__all__ = ["first_layers", "shorter"]


def _layers(program: Program) -> int:
    if program.unshared is not None:
        raise ValueError(
            f"Expected rows that are shared in all steps to cut layers off, got none shared from step {program.unshared} on: "
            f"compile with unshared=None"
        )
    if not program.layers:
        raise ValueError(
            f"Expected steps that pass messages one after the other and pool the last to cut layers off, got\n{program}"
        )
    return program.layers


def _lowered(lists: KeyTable, row: np.ndarray, rows: int) -> tuple[KeyTable, np.ndarray]:
    """Lists of (row, net count), the rows translated: the table of those that differ, and the number of each."""
    sums = lowered(Sums(tensor(lists.item_ptr), tensor(lists.a), tensor(lists.b)), tensor(row), rows)
    ptr, row, count = (part.numpy() for part in (sums.ptr, sums.row, sums.count))
    table = KeyTable()
    return table, table.add(lists.own, ptr, packed(row, count))


def shorter(program: Program, count: int) -> Program:
    """The steps of the same model with so many layers."""
    layers = _layers(program)
    if not 1 <= count <= layers:
        raise ValueError(f"Expected 1 to {layers} layers, as compiled, got {count}")
    pools = Step("pool", "subgraphs", (count,)), Step("pool", "graphs", (count + 1,))

    def left(need: tuple[int, str]) -> tuple[int, str] | None:
        """What is needed of a step, or of one step by another, under their new numbers."""
        name, _, other = need[1].rpartition(" ")
        old = [need[0], int(other)] if other.isdigit() else [need[0]]
        new = [n if n <= count else n - layers + count for n in old]
        if any(count < n <= layers for n in old):
            return None
        return (new[0], f"{name} {new[1]}" if len(new) > 1 else need[1])

    needs = frozenset(need for need in map(left, program.needs) if need is not None)
    return replace(program, steps=(*program.steps[: count + 1], *pools), needs=needs)


def first_layers(rows: list[StepRows], program: Program, count: int) -> list[StepRows]:
    """The rows that compiling for ``count`` layers would have given, in another order. Cost: one pass over the readout.

    Tables that both have are shared. A base row that no subgraph has in the last table is in no pool here either, though one
    might have it this early: pools are the same, written with longer deltas.
    """
    layers = _layers(program)
    last, pool, whole = rows[-3:]
    assert pool.lists is not None and pool.place is not None and whole.place is not None
    row = np.arange(len(last.keys), dtype=np.int32)
    for above in range(layers, count, -1):
        row = rows[above].keys.own_of(row)
    found = [replace(kept) for kept in rows[: count + 1]]
    lists, of_list = _lowered(pool.lists, row, len(rows[count].keys))
    pools, graphs = KeyTable(), KeyTable()
    of_pool = pools.absorb(pool.keys, item_map=of_list)
    of_graph = graphs.absorb(whole.keys, item_map=of_pool)
    found += [StepRows(pools, lists, of_pool[pool.place]), StepRows(graphs, place=of_graph[whole.place])]
    return found
