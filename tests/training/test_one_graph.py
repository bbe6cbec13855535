"""Nodes and links of one graph, from a file to predictions."""

from __future__ import annotations

import csv
from pathlib import Path

import code_of_mine
import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app
from enfa.datasets.one_graph import links_from_npz
from enfa.training import fit, read_config
from enfa.training.one_graph import compile_roots, labels_of_roots, open_one_graph
from enfa.training.settings.folder import BEST, folder_of
from enfa.training.start.prepare import prepare

FAST = ("accelerator=cpu", "threads=1", "hidden_channels=8")


def run(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code in (0, 2), result.output
    return " ".join(result.output.split())


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two communities of 30 nodes, whose features say little."""
    torch.set_num_threads(1)
    rng, path = np.random.default_rng(0), tmp_path_factory.mktemp("one") / "town.npz"
    y = np.arange(60) % 2
    low, high = np.triu_indices(60, 1)
    edge = rng.random(len(low)) < np.where(y[low] == y[high], 0.2, 0.01)
    x = (y[:, None] + rng.normal(size=(60, 2)) * 2).astype(np.float32)
    part = np.argsort(rng.random(60))
    masks = {name: np.isin(np.arange(60), part[s]) for name, s in
             (("train_mask", slice(30)), ("val_mask", slice(30, 40)), ("test_mask", slice(40, 60)))}  # fmt: skip
    np.savez(path, edge_index=np.stack([low[edge], high[edge]]), x=x, y=y, **masks)
    return path


def test_a_policy_that_draws_is_asked_once(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Subgraphs have the labels of their own roots, whatever order they are in."""
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    config = read_config(file, FAST, level="nodes", policy="Shuffled")
    model, data = enfa.DSGNN(2, 8, 2, num_layers=1, readout="root", norm="layer"), open_one_graph(config)
    compiled, about = compile_roots(config, data.graph, None, model)
    by_node = model(enfa.make_plan([data.graph], enfa.NodeMarking(), model))
    assert sorted(about) == list(range(60)) and (np.diff(about) < 0).any()
    torch.testing.assert_close(model(compiled[[0]]), by_node[about])


def test_a_model_of_ones_own_is_batched_as_its_steps_say(file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for no norm, which it does not take, and has one all the same, whose statistics are those of a batch."""
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    curves = []
    for plan in ("distinct", "full"):
        fast = (*FAST[:2], f"out={tmp_path}", f"name={plan}", f"plan={plan}", "precision=64", "epochs=2", "batch_size=8")
        found = fit(read_config(file, fast, level="nodes", model="Rooted"), progress=False)
        assert found is not None
        curves.append(found.loss)
    assert curves[0] == pytest.approx(curves[1], abs=2e-6)  # rounded in records


def test_nodes_from_a_file_to_predictions(file: Path, tmp_path: Path) -> None:
    words = (*FAST, f"out={tmp_path}", "epochs=15", "batch_size=16")
    said = run("train", file, "--task", "nodes", *words, "--no-progress")
    assert "test accuracy there" in said and float(said.split("test accuracy there ")[1].split()[0]) >= 0.75, said
    config = read_config(file, words, level="nodes")
    assert (config.policy, config.readout, config.norm) == ("ego_nets", "root", "layer")
    assert "test score" in run("test", file, *words, "level=nodes", "--no-progress")
    best, out = folder_of(config) / BEST, tmp_path / "p.csv"
    assert "60 predictions" in run("predict", best, file, "--out", out, "--batch-size", 7)
    with out.open() as rows:
        found = np.array([float(row["p1"]) for row in csv.DictReader(rows)])
    model, data = enfa.load(best), open_one_graph(config)
    assert "Expected a model of graphs, got one of nodes" in run("explain", best, file, "--out", tmp_path / "e.svg")
    whole = model(enfa.make_plan([data.graph], model.policy, model)).softmax(1)[:, 1]
    assert np.abs(found - whole.detach().numpy()).max() < 1e-5  # whatever the batches


def test_links_from_a_file_to_predictions(tmp_path: Path) -> None:
    """On a ring, on which every node knows the three next to it on both sides; all nodes are alike."""
    one, step = np.arange(60)[:, None], np.array([1, 2, 3])
    ring = {"edge_index": np.stack([np.repeat(one, 3), ((one + step) % 60).reshape(-1)]), "num_nodes": np.array(60)}
    file, words = tmp_path / "ring.npz", (*FAST, f"out={tmp_path}", "epochs=20")
    np.savez(file, **ring)
    said = run("train", file, "--task", "links", *words, "--no-progress")
    assert "test rocauc there" in said and float(said.split("test rocauc there ")[1].split()[0]) > 0.9, said
    best = folder_of(read_config(file, words, level="links")) / BEST
    np.savez(tmp_path / "new.npz", **ring, pairs=np.array([[0, 2], [5, 30], [2, 0]]))
    assert "3 predictions" in run("predict", best, tmp_path / "new.npz", "--out", tmp_path / "p.csv")
    with (tmp_path / "p.csv").open() as rows:
        found = list(csv.DictReader(rows))
    assert [(row["u"], row["v"]) for row in found] == [("0", "2"), ("5", "30"), ("2", "0")]
    assert found[0]["p0"] == found[2]["p0"] > found[1]["p0"]
    assert "Expected pairs of nodes to predict links for" in run("predict", best, file, "--out", tmp_path / "q.csv")


@pytest.mark.parametrize("norm", ["layer", "batch"])
@pytest.mark.parametrize("level", ["nodes", "links"])
def test_a_batch_is_the_conventional_model_on_its_subgraphs(file: Path, level: str, norm: str) -> None:
    """Loss and gradients of a batch are those of the full plan of the same subgraphs, with a norm over them alone."""
    config = read_config(file, [*FAST, "precision=64", f"norm={norm}", "batch_size=6"], level=level)
    run = prepare(config)
    data = open_one_graph(config)
    _, about = compile_roots(config, data.graph, data.pairs, run.module.model)
    labels, parts = labels_of_roots(data, about)
    batches = list(run.batches.train_dataloader())
    assert sum(len(plan.y) for plan in batches) == len(parts["train"])
    model = run.module.model.train()
    policy = run.batches.compiled.policy
    for number in (0, -1):
        subs = np.sort(list(run.batches.train_dataloader().sampled.batches(0))[number])

        class Part(enfa.Policy):
            marks = policy.marks

            def edits(self, graphs: object) -> object:
                return policy.edits(graphs).subset(graphs, [0], self.subs)

        part = Part()
        part.subs = subs
        plans = batches[number], enfa.make_plan([data.graph], part, model, kind="full")
        assert torch.equal(plans[0].y, labels[torch.from_numpy(subs)])
        out, gradients = [], []
        for plan in plans:
            model.zero_grad()
            out.append(model(plan))
            out[-1].square().sum().backward()
            gradients.append([p.grad.clone() for p in model.parameters()])
        assert torch.allclose(*out, rtol=1e-10, atol=1e-12)
        for one, other in zip(*gradients):
            assert torch.allclose(one, other, rtol=1e-9, atol=1e-11)


def test_links_are_split_without_a_leak(file: Path) -> None:
    data = links_from_npz(file, seed=3)
    whole = np.load(file)["edge_index"]
    edges = {tuple(e) for e in np.sort(whole.T, axis=1).tolist()}
    assert data.pairs is not None
    pairs = [tuple(sorted(p)) for p in data.pairs.tolist()]
    assert len(set(pairs)) == len(pairs) == 2 * len(edges)
    assert [p in edges for p in pairs] == data.labels[:, 0].bool().tolist()
    seen = {tuple(sorted(e)) for e in data.graph.edge_index.T.tolist()}
    for part, of in data.parts.items():
        y = data.labels[torch.from_numpy(of), 0]
        assert int(y.sum()) * 2 == len(y)
        there = {pairs[i] for i in of if data.labels[i, 0]}
        assert there <= seen if part == "train" else not there & seen
    assert sorted(np.concatenate(list(data.parts.values()))) == list(range(len(pairs)))
    assert len(data.parts["test"]) == 2 * int(np.ceil(0.1 * len(edges)))
    again, other = links_from_npz(file, seed=3), links_from_npz(file, seed=4)
    assert np.array_equal(again.pairs, data.pairs) and not np.array_equal(other.pairs, data.pairs)


def test_refused_in_one_sentence(file: Path, tmp_path: Path) -> None:
    arrays = dict(np.load(file))

    def other(**change: object) -> Path:
        path = tmp_path / f"x{len(list(tmp_path.iterdir()))}.npz"
        np.savez(path, **{k: v for k, v in {**arrays, **change}.items() if v is not None})
        return path

    both = arrays["train_mask"] | arrays["test_mask"]
    dense = np.stack(np.triu_indices(60, 1))[:, :1500]
    for path, task, words, message in [
        (tmp_path / "no.npz", "nodes", [], "There is no dataset file"),
        (file, "auto", [], "; a file of one graph is for --task nodes, or links"),
        (file, "edges", [], "Expected --task to be one of auto, classification"),
        (other(val_mask=None), "nodes", [], "Expected an array 'val_mask' for labels of nodes, got only"),
        (other(y=arrays["y"][:50]), "nodes", [], "Expected y to have a row for each of 60 nodes, got 50"),
        (other(train_mask=both), "nodes", [], "Expected masks that have no node in common, got node"),
        (other(y=arrays["y"] - 1), "nodes", [], "Expected classes from 0 on where a mask is set, got -1"),
        (other(test_mask=arrays["test_mask"] * 1), "nodes", [], "Expected test_mask to be a mask, got int64"),
        (other(edge_attrs=arrays["y"]), "nodes", [], "expected an array 'edge_attr', got 'edge_attrs', which nothing reads"),
        (
            other(train_mask=None, train_masks=both),
            "nodes",
            [],
            "expected an array 'train_mask', got 'train_masks', which nothing reads",
        ),
        (other(edge_index=None), "links", [], "Expected edges in an array 'edge_index'"),
        (other(edge_index=dense), "links", [], "Expected at least 1500 pairs of nodes without an edge"),
        (file, "links", ["fold=1"], "Expected fold 0 for links"),
        (file, "nodes", ["policy_params=3"], "Expected policy_params to be a mapping, got 3"),
        (file, "nodes", ["fold=1"], "has folds 0 to 0, got fold 1"),
        (file, "nodes", ["readout=sum"], "Expected readout root, because labels are those of nodes, got 'sum'"),
        (file, "nodes", ["model=dss"], "Expected model=ds for nodes and links of one graph"),
        (file, "nodes", ["policy=edge_deletion"], "Expected a policy with one subgraph for every node"),
        (file, "nodes", ["policy=pair_marking"], "Expected the policy pair_marking for links"),
        (file, "links", ["policy=node_marking"], "Expected the policy pair_marking for links"),
        (file, "links", ["metric=accuracy"], "Expected the metric of a binary task to be in ('rocauc', 'ap')"),
        (file, "nodes", ["metric=rocauc"], "Expected the metric of a multiclass task to be in ('accuracy',)"),
    ]:
        said = run("train", path, "--task", task, *FAST, f"out={tmp_path}", *words, "--no-progress")
        assert message in said, (path, task, words, said)
    np.savez(tmp_path / "many.npz", num_nodes=[2, 3], num_edges=[1, 1], edges=[[0, 1], [0, 1]], y=[0, 1])
    assert "Expected one graph for labels of nodes or links, got 2" in run(
        "train", tmp_path / "many.npz", "--task", "links", *FAST, f"out={tmp_path}"
    )


def test_directed_edges_stay_directed(file: Path, tmp_path: Path) -> None:
    arrays, words = dict(np.load(file)), (*FAST, f"out={tmp_path}", "epochs=1")
    np.savez(tmp_path / "directed.npz", **arrays, directions="both")
    run("train", tmp_path / "directed.npz", "--task", "nodes", *words, "--no-progress")
    best = folder_of(read_config(tmp_path / "directed.npz", words, level="nodes")) / BEST
    said = run("predict", best, file, "--out", tmp_path / "p.csv")
    assert "expected an array 'directions', because the model was trained on directed edges" in said
    assert "60 predictions" in run("predict", best, tmp_path / "directed.npz", "--out", tmp_path / "p.csv")
