"""The lists of a pool over an earlier table: what each row was one or several steps before."""

from __future__ import annotations

from enfa.plan.derive import lowered as lowered_sums
from enfa.plan.steps.table import StepPlan
from enfa.plan.table import Sums

__all__ = ["lowered"]


def lowered(plan: StepPlan, pool: int, table: int) -> Sums:
    """Rows that an edit has not reached so early cancel against base rows: the lists get shorter."""
    from enfa.plan.steps.derived import way

    cache, name = plan.tables[pool].cache, f"lowered {table}"
    if name not in cache:
        sums, index = plan.tables[pool].sums, way(plan, plan.program.steps[pool].reads[0], table)
        assert sums is not None and index is not None
        cache[name] = lowered_sums(sums, index, plan.num_rows(table))
    return cache[name]
