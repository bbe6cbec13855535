"""The rows that each graph alone has, found in the rows of all."""

import numpy as np

from enfa.plan.keys.intern import KeyTable
from enfa.plan.rows._pairs import count_by_graph
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.wanted import items_of
from enfa.plan.step import Program, Step

__all__ = ["merged", "rows_by_graph"]

Lists = tuple[np.ndarray, np.ndarray, np.ndarray]  # ptr [G+1], rows, counts


def merged(parts: list[Lists], rows: int) -> Lists:
    """The rows of every graph in any of some lists, each once, with its counts added up."""
    some, row, count = parts[0]
    if len(parts) > 1:
        owner = np.concatenate([np.repeat(np.arange(len(ptr) - 1), np.diff(ptr)) for ptr, _, _ in parts])
        order = np.argsort(owner, kind="stable")
        row, count = (np.concatenate([part[i] for part in parts])[order] for i in (1, 2))
        some = np.sum([part[0] for part in parts], axis=0)
    ptr, new, total = np.zeros_like(some), np.empty(len(row), np.int32), np.empty(len(row), np.int64)
    none = np.zeros_like(some), np.empty(0, np.int32)
    count_by_graph(some, row, count, *none, np.full(rows, -1, np.int64), ptr, new, total)
    return ptr, new[: ptr[-1]], total[: ptr[-1]]


def _items(table: KeyTable, lists: Lists, weighted: bool = False) -> Lists:
    """Of every graph the items of its rows, each as often as its row; ``weighted``: times its own count."""
    ptr, row, own = items_of(table, lists[1])
    count = np.repeat(lists[2], np.diff(ptr))
    if weighted:
        count *= own
    return ptr[lists[0]].astype(np.int64), row, count


def _read(step: Step, read: int, rows: StepRows, lists: Lists) -> list[Lists]:
    """What the rows of a step read of another, of which they have own rows or items, or both."""
    found = []
    if step.reads[0] == read and step.op in ("propagate", "join", "spread", "diagonal"):
        found.append((lists[0], rows.keys.own_of(lists[1]), lists[2]))
    if step.reads[-1] == read and step.op not in ("spread", "diagonal"):
        if rows.lists is None:
            found.append(_items(rows.keys, lists))
        else:
            found.append(_items(rows.lists, merged([_items(rows.keys, lists)], len(rows.lists)), True))
    return found


def rows_by_graph(
    rows: list[StepRows], program: Program, node_ptr: np.ndarray, sub_ptr: np.ndarray, pair_ptr: np.ndarray
) -> list[Lists]:
    """For every step the rows of each graph, each once, and, where rows are counted, what each stands for in the graph.

    Cost: a pass over the rows that each graph has; over their messages, too, where rows that nothing reads were left out.
    Elsewhere each pair has a row in every step of pairs, and so the own rows of one step are all that there are.
    """
    found: dict[int, Lists] = {}
    for number in reversed(range(len(rows))):
        step, mine, parts, pool = program.steps[number], rows[number], [], program.counted_by.get(number)
        if mine.count_ptr is not None and mine.count_row is not None and mine.count is not None:
            parts.append((mine.count_ptr, mine.count_row, mine.count))
        elif mine.place is not None:
            ptr = {"pairs": pair_ptr, "nodes": node_ptr, "subgraphs": sub_ptr}.get(step.kind, np.arange(len(node_ptr)))
            parts.append((ptr, mine.place, np.ones(len(mine.place), np.int64)))
        if pool is not None:
            parts += _read(program.steps[pool], number, rows[pool], found[pool])
        for later, other in found.items():
            above = program.steps[later]
            if number in above.reads and not program.counted:
                parts += _read(above, number, rows[later], other)
            elif number in above.reads and not parts and above.op in ("propagate", "join"):
                parts += _read(above, number, rows[later], other)[:1]
        if not parts:  # nothing reads the step, and nothing counts it
            parts = [(np.zeros(len(node_ptr), np.int64), np.empty(0, np.int32), np.empty(0, np.int64))]
        found[number] = merged(parts, len(mine.keys))
        if not program.counted:  # counts mean nothing there: multiplied from step to step, they would outgrow their type
            found[number][2][:] = 1
    return [found[number] for number in range(len(rows))]
