"""``policy: subsample``: whole bags are compiled once, every epoch trains on a new part of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import enfa
from enfa.datasets import from_npz
from enfa.training import Config, fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.start.prepare import prepare
from enfa.training.trained.predict import predict

Write = Callable[..., Path]
DRAW: dict[str, Any] = {
    "policy": "subsample", "policy_params": {"policy": {"name": "node_marking"}, "count": 2, "seed": 7},
}  # fmt: skip


def _train(path: Path, *overrides: str, resume: bool = False) -> Config:
    config = read_config(path, overrides)
    fit(config, resume=resume, progress=False)
    return config


def _checkpoint(config: Config, name: str = LAST) -> dict[str, Any]:
    return load_checkpoint(folder_of(config) / name)


def _subgraphs(plan: enfa.Bag) -> list[int]:
    """Of every graph: how many its pool adds up."""
    sums = plan.tables[-1].sums
    assert plan.program.steps[-1].op == "pool" and sums is not None
    return torch.segment_reduce(sums.count.double(), "sum", offsets=sums.ptr.long()).long().tolist()


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("workers", [0, 1])
def test_resumed_runs_draw_the_same(config_file: Write, model: str, workers: int) -> None:
    path = config_file(model=model, num_workers=workers, **DRAW)
    whole = _train(path, "name=whole", "epochs=3")
    _train(path, "name=parts", "epochs=1")
    parts = _train(path, "name=parts", "epochs=3", resume=True)
    a, b = _checkpoint(whole), _checkpoint(parts)
    assert a["enfa"]["curve"] == b["enfa"]["curve"]
    assert all(torch.equal(a["state_dict"][key], b["state_dict"][key]) for key in a["state_dict"])


@pytest.mark.parametrize("model", ["ds", "dss"])
def test_epochs_draw_anew_and_whole_bags_are_evaluated(config_file: Write, npz: Path, model: str) -> None:
    run = prepare(read_config(config_file(model=model, **DRAW)))
    graphs = from_npz(npz).graphs
    assert run.batches.compiled.policy == enfa.NodeMarking()
    loader, seen = run.batches.train_dataloader(), []
    net = run.module.model.eval()
    for epoch in range(2):
        outputs = torch.zeros(len(graphs), 2, dtype=torch.float64)
        for plan in loader:
            assert _subgraphs(plan) == [2] * plan.num_graphs
            outputs[plan.graph_ids] = net(plan).detach()
            # what the draw should be, planned from the graphs themselves by the conventional model
            full = enfa.compile(graphs, enfa.NodeMarking(), net, progress=False, kind="full")
            draw = enfa.Subsample(enfa.NodeMarking(), count=2, seed=7)
            torch.testing.assert_close(net(full.plan(plan.graph_ids, draw, epoch)), net(plan), rtol=1e-10, atol=1e-10)
        seen.append(outputs)
    assert not torch.allclose(*seen)
    for loader in (run.batches.val_dataloader(), run.batches.test_dataloader()):
        for plan in loader:
            sizes = [graphs[g].num_nodes for g in plan.graph_ids.tolist()]
            assert _subgraphs(plan) == sizes


def test_other_seeds_draw_otherwise(config_file: Write) -> None:
    path = config_file(epochs=1, lr=1e-9, **DRAW)
    other = "policy_params={policy: node_marking, count: 2, seed: 8}"
    a, b, c = (_train(path, f"name={n}", *more) for n, more in (("a", []), ("b", []), ("c", [other])))
    losses = [_checkpoint(config)["enfa"]["curve"][0]["loss"] for config in (a, b, c)]
    assert losses[0] == losses[1] != losses[2]


@pytest.mark.parametrize("model", ["ds", "dss"])
def test_predictions_do_not_depend_on_the_place_in_the_file(config_file: Write, npz: Path, tmp_path: Path, model: str) -> None:
    config = _train(config_file(epochs=1, model=model, **DRAW))
    arrays = dict(np.load(npz))
    last = int(arrays["num_nodes"][-1]), int(arrays["num_edges"][-1])
    arrays |= {"num_nodes": arrays["num_nodes"][-1:], "num_edges": arrays["num_edges"][-1:], "y": arrays["y"][-1:]}
    arrays |= {"edges": arrays["edges"][-last[1] :], "node_label": arrays["node_label"][-last[0] :]}
    np.savez(tmp_path / "last.npz", **arrays)
    checkpoint = folder_of(config) / BEST
    alone, among = predict(checkpoint, tmp_path / "last.npz"), predict(checkpoint, npz)
    assert [alone[0][k] for k in ("p0", "p1")] == pytest.approx([among[-1][k] for k in ("p0", "p1")], abs=2e-6)


@pytest.mark.parametrize(("name", "value", "use"), [("bag", "sum", "mean"), ("context", "mpnn", "dss")])
def test_models_that_add_up_over_a_bag_are_refused(config_file: Write, name: str, value: str, use: str) -> None:
    path = config_file(model="dss", **{name: value}, **DRAW)
    with pytest.raises(ValueError, match=f"{name}={value} adds up over a bag: use {name}={use}"):
        prepare(read_config(path))
