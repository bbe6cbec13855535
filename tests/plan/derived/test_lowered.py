"""The lists of a pool over earlier tables pool the rows that the same pairs have there."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from cases import EVERY

import enfa
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag, make_plan
from enfa.plan.derived.lowered import lowered
from enfa.plan.derived.maps import segment_ids
from enfa.plan.derived.needs import way
from enfa.plan.links import Sums
from enfa.plan.make import sources_of_steps
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.slicing.slice import Slicer
from enfa.plan.step import Program, Step
from enfa.testing import degenerate_graphs, random_graphs

GRAPHS = random_graphs(5, 8, seed=1, edge_channels=2) + list(degenerate_graphs(3, 2).values())
START, POOL = Step("start", "pairs"), "subgraphs"
CHAIN = (START, *(Step("propagate", "pairs", (i,)) for i in range(3)), Step("pool", POOL, (3,)), Step("pool", "graphs", (4,)))
JOINED = (
    START, Step("propagate", "pairs", (0,)), Step("propagate", "pairs", (0,), edges=True), Step("join", "pairs", (1, 2)),
    Step("propagate", "pairs", (3,)), Step("pool", POOL, (4,)), Step("pool", "graphs", (5,)),
)  # fmt: skip
PROGRAMS = {"chain": (CHAIN, 4, [0, 1, 2]), "joined": (JOINED, 5, [0, 1, 2, 3]), "one table": (CHAIN, 4, [1])}


def _sums(lists: Sums, values: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(len(lists.ptr) - 1, dtype=values.dtype)
    return out.index_add_(0, segment_ids(lists.ptr, len(lists.row)), values[lists.row] * lists.count)


def _check(plan: Bag, pool: int, table: int) -> int:
    """Sums of values drawn for every row of a table, over its rows and over the rows that have them as own rows."""
    of_pool, found = plan.tables[pool].sums, lowered(plan, pool, table)
    index = way(plan, plan.program.steps[pool].reads[0], table)
    values = torch.randint(-9, 9, (plan.num_rows(table),))
    assert of_pool is not None and index is not None
    assert _sums(found, values).tolist() == _sums(of_pool, values[index]).tolist()
    assert bool((found.count != 0).all())
    entry = segment_ids(found.ptr, len(found.row)) * len(values) + found.row
    assert len(entry.unique()) == len(entry)  # each row once
    return len(found.row)


@pytest.mark.parametrize("policy", ["mark", "delete", "ego", "mixed"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_lists_pool_the_same_pairs(name: str, policy: str) -> None:
    """Derived from a plan, and sliced out of what was made for all graphs."""
    steps, pool, tables = PROGRAMS[name]
    needs = frozenset((pool, f"lowered {table}") for table in tables)
    checked = check_graphs(GRAPHS)
    edits = edits_by(EVERY[policy], checked)
    program = Program(steps, needs=needs)
    sources, start = sources_of_steps(checked, edits, program)
    slicer = Slicer(step_rows_of(checked, edits, program, start), sources, Bag)
    for chosen in ([4, 0, 9, 2], [], list(range(len(GRAPHS)))):
        sliced = slicer.plan(np.array(chosen, np.int64))
        assert set(sliced.tables[pool].cache) == {f"lowered {table}" for table in tables}
        bags = [sliced] if not chosen else [sliced, make_plan([GRAPHS[g] for g in chosen], EVERY[policy], Program(steps))]
        lengths = [[_check(bag, pool, table) for table in tables] for bag in bags]
        assert lengths[0] == lengths[-1] == sorted(lengths[0])
    assert lengths[0][0] < len(sliced.tables[pool].sums.row) or policy == "ego"  # what cancels is not there


def test_a_full_plan_lists_what_it_lists() -> None:
    bag = make_plan(GRAPHS, enfa.NodeMarking(), Program(CHAIN), "full")
    assert _check(bag, 4, 1) == bag.num_pairs


def test_tables_that_own_rows_do_not_lead_to_are_refused() -> None:
    bag = make_plan(GRAPHS, enfa.NodeMarking(), Program((*JOINED, Step("spread", "pairs", (5,)))))
    for pool, table in ((5, 7), (3, 0)):
        with pytest.raises(ValueError, match=r"Expected a pool, and a table that its own reaches by own rows, got step \d \("):
            lowered(bag, pool, table)
