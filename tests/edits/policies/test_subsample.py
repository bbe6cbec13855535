from __future__ import annotations

import numpy as np
import pytest
import torch
from programs import layers

import enfa
from enfa.batch.compile import in_precision
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag
from enfa.plan.make import sources_of_steps, step_plan_of
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.slicing.slice import Slicer
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs
from enfa.testing.results import distance, results_of, scales_of

from .conftest import CASES, model_for

POLICIES = {
    "marking": enfa.NodeMarking(),
    "deletion": enfa.NodeDeletion(),
    "edge deletion": enfa.EdgeDeletion(),
    "ego": enfa.EgoNets(1, mark=True),
    "reconstruction": enfa.Reconstruction(3, 9),
    "edge marking": enfa.EdgeMarking("degrees"),
}
GRAPHS = [*random_graphs(4, 9, seed=1, edge_channels=2), *degenerate_graphs(edge_channels=2).values()]


def slicer_for(policy, program):
    checked = check_graphs(GRAPHS)
    graphs, edits = in_precision(checked, edits_by(policy, checked), np.float64)
    sources, kind = sources_of_steps(graphs, edits, program)
    return graphs, edits, Slicer(step_rows_of(graphs, edits, program, kind), sources, Bag)


# a marked edge needs a conv that reads edges
PAIRS = [
    (name, case)
    for name, policy in POLICIES.items()
    for case in ("gin max concat", "gine sum dropout", "gcn concat", "gatv2")
    if not policy.edge_mark_channels or CASES[case]["conv"] in ("gine", "gatv2")
]


@pytest.mark.parametrize(("name", "case"), PAIRS)
def test_a_draw_from_compiled_rows_is_exact(name, case):
    policy = POLICIES[name]
    for options in ({}, {"readout": "root"}, {"readout": "root", "norm": "layer"}):
        if options and name in ("deletion", "reconstruction"):
            continue
        model = model_for(policy, case, **options).double()
        program = enfa.trace(model, GRAPHS, policy)
        graphs, edits, slicer = slicer_for(policy, program)
        for epoch, chosen in enumerate(([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], [3, 0, 12, 7])):
            ids = np.array(chosen)
            subs = enfa.Subsample(policy, fraction=0.4, seed=1).draw(edits.sub_ptr, ids, epoch)
            assert len(ids) <= len(subs) < edits.num_subgraphs
            full, *plans = (
                step_plan_of(graphs.subset(ids), edits.subset(graphs, ids, subs), program, kind, Bag)
                for kind in ("full", "ego", "distinct")
            )
            if options.get("readout") != "root" or options.get("norm") == "layer":
                plans.append(slicer.plan(ids, subs))
            else:  # BatchNorm counts rows that no pool lists
                with pytest.raises(ValueError, match=r"Expected whole bags, because the model counts the rows of step"):
                    slicer.plan(ids, subs)
            for plan in (full, *plans):  # what dropout may tell graphs by
                plan.graph_ids = torch.from_numpy(ids)
            for train in (True, False):
                reference = results_of(model, full, train, 0)
                scales = scales_of(reference)
                for plan in plans:
                    found = results_of(model, plan, train, 0)
                    for what, value in reference.items():
                        assert distance(found[what], value) <= 1e-10 * scales[what], (plan.kind, what)


@pytest.mark.parametrize("case", CASES)
def test_as_a_policy_by_itself(case, exact):
    exact(enfa.Subsample(enfa.NodeDeletion(), count=2, seed=3), case)
    exact(enfa.Subsample(enfa.EgoNets(1), fraction=0.5), case)


def test_contexts_and_node_outputs_are_refused():
    for program in (layers(2, "input"), layers(2, output="node")):
        _, edits, slicer = slicer_for(enfa.NodeMarking(), program)
        with pytest.raises(ValueError, match=r"whole bags, because step \d \(nodes, across \d\) reads rows of several"):
            slicer.plan(np.array([0]), edits.sub_ptr[:1])
        slicer.plan(np.array([0]))


PTR = np.array([0, 5, 5 + 1, 6 + 40])


def test_sizes_and_order():
    every = np.arange(3)
    for policy, sizes in (
        (enfa.Subsample(enfa.NodeMarking(), fraction=0.3), [2, 1, 12]),
        (enfa.Subsample(enfa.NodeMarking(), count=4), [4, 1, 4]),
        (enfa.Subsample(enfa.NodeMarking(), fraction=1.0), [5, 1, 40]),
    ):
        subs = policy.draw(PTR, every, 7)
        assert np.bincount(np.searchsorted(PTR, subs, side="right") - 1).tolist() == sizes
        assert (np.diff(subs) > 0).all()


def test_depends_on_seed_epoch_and_graph_alone():
    policy = enfa.Subsample(enfa.NodeMarking(), count=3, seed=5)
    together = policy.draw(PTR, np.array([2, 0]), 1)
    assert together[:3].tolist() == policy.draw(PTR, np.array([2]), 1).tolist()
    assert together[3:].tolist() == policy.draw(PTR, np.array([0]), 1).tolist()
    assert together[3:].tolist() == policy.draw(np.array([0, 5, 9]), np.array([0]), 1).tolist()
    draws = {tuple(policy.draw(PTR, np.array([2]), epoch)) for epoch in range(20)}
    others = {tuple(enfa.Subsample(enfa.NodeMarking(), count=3, seed=s).draw(PTR, np.array([2]), 0)) for s in range(20)}
    assert len(draws) > 17 and len(others) > 17


def test_uniform_without_a_score_and_weighted_with_one():
    policy = enfa.Subsample(enfa.NodeMarking(), count=1)
    ptr, epochs = np.array([0, 4]), 4000
    found = np.bincount([policy.draw(ptr, [0], e)[0] for e in range(epochs)], minlength=4) / epochs
    assert abs(found - 0.25).max() < 0.03
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    found = np.bincount([policy.draw(ptr, [0], e, np.log(weights))[0] for e in range(epochs)], minlength=4) / epochs
    assert abs(found - weights).max() < 0.03


def test_greedy_takes_the_highest():
    policy = enfa.Subsample(enfa.NodeMarking(), count=2, greedy=True)
    score = np.zeros(46)
    score[[1, 4, 45, 20]] = 5.0, 7.0, 1.0, 2.0
    assert policy.draw(PTR, np.arange(3), 3, score).tolist() == [1, 4, 5, 20, 45]


@pytest.mark.parametrize(
    "arguments, message",
    [
        ({}, "Expected either fraction or count"),
        ({"fraction": 0.5, "count": 2}, "Expected either fraction or count"),
        ({"fraction": 0.0}, "Expected fraction to be a number > 0 and <= 1, got 0.0"),
        ({"fraction": True}, "Expected fraction to be a number > 0 and <= 1, got True"),
        ({"count": 0}, "count to be an integer >= 1"),
    ],
)
def test_refuses_nonsense(arguments, message):
    with pytest.raises(ValueError, match=message):
        enfa.Subsample(enfa.NodeMarking(), **arguments)
    with pytest.raises(TypeError, match=r"Expected an enfa\.Policy to draw from"):
        enfa.Subsample("node_marking", count=1)


def test_wrong_draws_and_scores():
    policy = enfa.Subsample(enfa.NodeMarking(), count=2)
    for score in (np.zeros(3), np.full(46, np.nan)):
        with pytest.raises(ValueError, match="a score below inf for each of 46 subgraphs"):
            policy.draw(PTR, np.arange(3), 0, score)
    _, edits, slicer = slicer_for(enfa.NodeMarking(), layers(1))
    for subs, message in (
        ([edits.sub_ptr[1]], "from the bags of the chosen graphs"),
        ([0, 0], "at most once"),
        ([10**6], "Expected subgraphs 0 to"),
    ):
        with pytest.raises(ValueError, match=message):
            slicer.plan(np.array([0]), np.array(subs))
    assert slicer.plan(np.array([0])).num_subgraphs == edits.sub_ptr[1]  # the scratch is clean again


def test_a_fixed_draw_by_name():
    policy = enfa.edits.policy_from("subsample", policy={"name": "ego_nets", "hops": 1}, count=2)
    assert policy == enfa.Subsample(enfa.EgoNets(1), count=2)
    assert policy.mark_channels == 1
    assert enfa.edits.policy_from(policy.name(), **policy.params) == policy
    model = enfa.DSGNN(3, 4, 2, 2)
    assert_same_as_full(model, policy, random_graphs(3, 6))
