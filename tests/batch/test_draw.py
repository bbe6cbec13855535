"""Draws of subgraphs from compiled bags, epoch by epoch."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from programs import layers

import enfa


def test_a_loader_draws_anew_each_epoch_and_equals_the_drawn_bags():
    graphs = enfa.testing.random_graphs(12, 9, seed=3)
    draw = enfa.Subsample(enfa.NodeMarking(), count=2, seed=5)
    model = enfa.DSGNN(3, 8, 2, 3).double().eval()
    compiled = enfa.compile(graphs, draw.policy, model, progress=False)
    full = enfa.compile(graphs, draw.policy, model, progress=False, kind="full")
    loader = enfa.DataLoader(compiled, 5, shuffle=True, seed=1, draw=draw)
    epochs = []
    for epoch in range(2):
        out = torch.zeros(len(graphs), 2, dtype=torch.float64)
        for plan in loader:
            reference = full.plan(plan.graph_ids, draw, epoch)
            torch.testing.assert_close(model(plan), model(reference), rtol=1e-10, atol=1e-10)
            assert plan.num_subgraphs == sum(min(2, graphs[g].num_nodes) for g in plan.graph_ids.tolist())
            out[plan.graph_ids] = model(plan)
        epochs.append(out)
    assert not torch.allclose(epochs[0], epochs[1])


def test_scores_choose_and_contexts_refuse():
    graphs = enfa.testing.random_graphs(4, 9, seed=2)
    draw = enfa.Subsample(enfa.NodeMarking(), count=1, greedy=True)
    model = enfa.DSGNN(3, 8, 2, 2)
    compiled = enfa.compile(graphs, draw.policy, model, progress=False)
    score = np.arange(compiled.num_subgraphs, dtype=float)
    plan = next(iter(enfa.DataLoader(compiled, 4, draw=draw, score=score)))
    assert plan.num_pairs == sum(g.num_nodes for g in graphs) and plan.num_subgraphs == len(graphs)
    assert enfa.make_plan(graphs, draw.policy, model).num_subgraphs == compiled.num_subgraphs
    dss = enfa.DSSGNN(3, 8, 2, 2)
    with pytest.raises(ValueError, match="whole bags"):
        enfa.compile(graphs, draw.policy, dss, progress=False).plan([0], draw)


@pytest.mark.parametrize(
    ("compiled", "drawn"),
    [
        (enfa.NodeMarking(), enfa.NodeDeletion()),
        (enfa.NodeDeletion(isolate=True), enfa.NodeDeletion()),
        (enfa.Subsample(enfa.NodeMarking(), count=2), enfa.NodeMarking()),
    ],
    ids=repr,
)
def test_draws_are_of_the_compiled_policy(compiled: enfa.Policy, drawn: enfa.Policy, tmp_path: Path) -> None:
    graphs = enfa.testing.random_graphs(4, 6, seed=3)
    made = enfa.compile(graphs, compiled, layers(2), progress=False)
    made.save(tmp_path / "made.enfa")
    there = re.escape(type(compiled).__name__) + r"\(.*\)"  # a file holds the parameters in another order
    message = f"^Expected to draw from the compiled bags, those of {there}, got {re.escape(repr(drawn))}$"
    for dataset in (made, enfa.load_compiled(tmp_path / "made.enfa")):  # the file's policy is known by its name alone
        dataset.plan([0, 1], enfa.Subsample(compiled, count=1))
        enfa.DataLoader(dataset, draw=enfa.Subsample(compiled, count=1))
        with pytest.raises(ValueError, match=message):
            dataset.plan([0, 1], enfa.Subsample(drawn, count=1))
        with pytest.raises(ValueError, match=message):
            enfa.DataLoader(dataset, draw=enfa.Subsample(drawn, count=1))
        with pytest.raises(TypeError, match=r"Expected draw to be an enfa.Subsample, got NodeMarking\(distances=None\)"):
            enfa.DataLoader(dataset, draw=enfa.NodeMarking())


@pytest.mark.parametrize("epoch", [1.5, -1, True])
def test_epochs_are_whole(epoch: object) -> None:
    draw = enfa.Subsample(enfa.NodeMarking(), count=1)
    with pytest.raises(ValueError, match="Expected epoch to be an integer >= 0, got"):
        draw.draw(np.array([0, 5]), np.array([0]), epoch)
