"""Every policy by name, with its parameters, as users write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.edits import POLICIES, policy_from
from enfa.training.checkpoint import load_checkpoint

pytest.importorskip("lightning", reason="training needs the extra enfa[train]")

ONCE: list[dict[str, Any]] = [
    {"name": "node_marking"},
    {"name": "node_marking", "distances": 2},
    {"name": "node_deletion"},
    {"name": "node_deletion", "isolate": True},
    {"name": "edge_deletion"},
    {"name": "edge_marking"},
    {"name": "edge_marking", "structure": "degrees", "hops": 2, "bins": 3},
    {"name": "edge_marking", "structure": "distances", "hops": 2},
    {"name": "ego_nets", "hops": 1},
    {"name": "ego_nets", "hops": 2, "mark": True},
    {"name": "ego_nets", "hops": 2, "isolate": True},
    {"name": "ego_nets", "hops": 1, "mark": True, "isolate": True},
    {"name": "reconstruction", "k": 3, "max_subgraphs": 5, "seed": 1},
    {"name": "reconstruction", "k": -1},
]
EVERY = [
    *ONCE,
    *({"name": "subsample", "policy": one, "count": 2, "seed": 3} for one in ONCE),
    {"name": "subsample", "policy": "node_marking", "fraction": 0.5},
    {"name": "ego_nets", "hops": 2, "mark": "distances"},
    {"name": "neighbor_marking", "hops": 2, "mark": "distances"},
    {"name": "most_central", "policy": {"name": "ego_nets", "hops": 2, "mark": True}, "count": 2},
]


def _words(policy: dict[str, Any]) -> str:
    return " ".join(_words(v) if isinstance(v, dict) else str(v) for v in policy.values())


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sixteen small graphs of two classes."""
    torch.set_num_threads(1)
    path, rng = tmp_path_factory.mktemp("data") / "tiny.npz", np.random.default_rng(0)
    nodes = rng.integers(4, 7, 16)
    edges = [np.array(sorted({(0, 1), *((int(a), int(b)) for a, b in rng.integers(0, n, (9, 2)) if a < b)})) for n in nodes]
    np.savez(
        path, num_nodes=nodes, num_edges=[len(e) for e in edges], edges=np.concatenate(edges), y=np.arange(16) % 2,
        node_label=rng.integers(0, 3, nodes.sum()),
    )  # fmt: skip
    return path


def _train(sample: Path, folder: Path, policy: dict[str, Any], **settings: object) -> list[dict[str, float]]:
    """What each epoch came to."""
    name, params = policy["name"], {k: v for k, v in policy.items() if k != "name"}
    marks_edges = policy_from(**policy).edge_mark_channels
    values = {
        "dataset": str(sample), "out": str(folder), "policy": name, "policy_params": params, "num_layers": 2,
        "hidden_channels": 4, "epochs": 1, "batch_size": 8, "accelerator": "cpu", "threads": 1, "precision": "64",
        "conv": "gine" if marks_edges else "gin", **settings,
    }  # fmt: skip
    run = "-".join(str(v) for v in settings.values())
    file = folder / f"{run}.yaml"
    file.write_text(yaml.safe_dump(values))
    result = CliRunner().invoke(app, ["train", str(file), "--no-progress"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return load_checkpoint(folder / run / "fold-0-seed-0" / "last.ckpt")["enfa"]["curve"]


def test_every_policy_is_here() -> None:
    """But for pair_marking, which is for links of one graph: tests/training/test_one_graph.py."""
    assert {one["name"] for one in EVERY} == set(POLICIES) - {"pair_marking"}


@pytest.mark.parametrize("policy", EVERY, ids=_words)
@pytest.mark.parametrize("model", ["ds", "dss"])
def test_train(sample: Path, tmp_path: Path, policy: dict[str, Any], model: str) -> None:
    """One epoch; the conventional model comes to the same loss."""
    full, distinct = (_train(sample, tmp_path, policy, model=model, plan=plan) for plan in ("full", "distinct"))
    assert len(full) == len(distinct) == 1
    assert full[0]["loss"] == pytest.approx(distinct[0]["loss"], rel=1e-9)
    assert full[0]["score"] == distinct[0]["score"]


@pytest.mark.parametrize("policy", EVERY, ids=_words)
def test_inspect(sample: Path, tmp_path: Path, policy: dict[str, Any]) -> None:
    """As a mapping, and as name:parameter=value; counts, table and picture."""
    params = [f"{k}={yaml.safe_dump(v, default_flow_style=True, width=999).splitlines()[0]}" for k, v in policy.items()]
    short = ":".join([policy["name"], *params[1:]])
    found = []
    for text in (short, yaml.safe_dump(policy, default_flow_style=True, width=999).strip()):
        options = ["--policy", text, "--layers", "2", "--json"]
        result = CliRunner().invoke(app, ["inspect", str(sample), *options], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        found.append(json.loads(result.stdout))
    assert found[0] == found[1]
    assert found[0]["policy"] == repr(policy_from(**policy)) and found[0]["graphs"] == 16
    plot = tmp_path / "one.png"
    options = ["--policy", short, "--layers", "1", "--graph", "2", "--plot", str(plot)]
    result = CliRunner().invoke(app, ["inspect", str(sample), *options], catch_exceptions=False)
    assert result.exit_code == 0 and plot.read_bytes()[1:4] == b"PNG"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{name: ego_nets}", "Expected the parameter 'hops'"),
        ("{hops: 2}", "Expected a policy such as {name: ego_nets, hops: 2}"),
        ("subsample:count=2:policy={hops: 2}", "Expected policy to be a policy's name, or a mapping"),
        ("subsample:count=2:policy=ego_net", "did you mean 'ego_nets'"),
        ("edge_marking:structure=degree", "did you mean 'degrees'"),
    ],
)
def test_mistakes(sample: Path, text: str, message: str) -> None:
    result = CliRunner().invoke(app, ["inspect", str(sample), "--policy", text])
    assert result.exit_code == 2 and message in " ".join(result.output.split())
