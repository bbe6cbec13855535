"""A prepared plan without the arrays that nothing reads gives what the plan gives."""

from __future__ import annotations

import pytest
from static_models import EVERY_MODEL, assert_same, graphs_for, model_for, results

import enfa
from enfa.nn.bag import make_plan
from enfa.plan.derived.prepare import lean, prepare


@pytest.mark.parametrize("kind", ["distinct", "full"])
@pytest.mark.parametrize("name", EVERY_MODEL)
def test_lean_plans_give_the_same(name: str, kind: str) -> None:
    graphs, policy, model = graphs_for(name), enfa.NodeMarking(), model_for(name)
    bag = make_plan(graphs, policy, model, kind)
    needs = bag.program.needs
    plan = lean(prepare(make_plan(graphs, policy, model, kind), needs), needs)
    unread = [t for t in plan.leaves() if t.is_meta]
    assert unread and all(not t.is_meta for t in bag.leaves())
    assert len(plan.leaves()) == len(lean(prepare(plan, needs), needs).leaves())  # nothing is left to be derived
    for train in (True, False):
        assert_same(results(model, plan, train), results(model, bag, train))


def test_a_lean_plan_moves_fewer_bytes() -> None:
    model = model_for("gin")
    bag = make_plan(graphs_for("gin"), enfa.NodeMarking(), model)
    needs = bag.program.needs
    whole, left = (sum(t.nbytes for t in p.tensors()) for p in (prepare(bag, needs), lean(bag, needs)))
    assert left < 0.75 * whole
