"""The one loop over layers, for every plan and every model."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor

from enfa.nn.layer import SubgraphLayer
from enfa.plan.identity import row_identities
from enfa.plan.spec import Spec
from enfa.plan.table import Plan

__all__ = ["check_spec", "execute"]


def check_spec(plan: Plan, spec: Spec) -> None:
    """A plan serves the spec it was made for and no other."""
    if plan.spec != spec:
        raise ValueError(
            "Expected a plan made with this model's spec (make_plan(..., spec=model.spec)), got one that differs: "
            + "; ".join(spec.differences(plan.spec))
        )


def execute(plan: Plan, first: Tensor, layers: Iterable[SubgraphLayer], edge: Tensor | None) -> list[Tensor]:
    """Tables 1…L from table 0."""
    tables, rows, degree = [], first, plan.degree
    for i, (module, layer) in enumerate(zip(layers, plan.layers)):
        rows = module(rows, layer, plan, edge, degree, lambda k, i=i: row_identities(plan)[i][k])
        degree = None if degree is None else degree.index_select(0, layer.previous)
        tables.append(rows)
    return tables
