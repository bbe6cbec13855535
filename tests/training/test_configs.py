"""The configs that come with the package: what they are called, and that each of them trains."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from torch_geometric.data import Data

from enfa.datasets import Benchmark, from_graphs
from enfa.edits import policies
from enfa.nn.models.registry import MODELS
from enfa.training import Config, read_config
from enfa.training.build import make_model
from enfa.training.problem import Problem

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "configs").glob("*.yaml"))
POLICIES = {
    "node_marking": "nm", "node_deletion": "nd", "edge_deletion": "ed", "ego_nets": "ego", "neighbor_marking": "pairs",
}  # fmt: skip


def shipped(path: Path) -> Config:
    """The settings of a file; skips where its model is not known here."""
    try:
        return read_config(path)
    except ValueError as error:
        if "Expected model to be one of" not in str(error):
            raise
        pytest.skip(str(error))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_shipped_configs_are_named_after_what_they_hold(path: Path) -> None:
    config = shipped(path)
    policy = POLICIES[config.policy] + ("d" if "distances" in config.policy_params else "")
    other = config.conv not in ("gin", "gine")  # beside the paper's own
    assert path.stem == f"{config.dataset}-{config.model}-{policy}" + f"-{config.conv}" * other


def test_no_two_shipped_configs_say_the_same() -> None:
    read = [yaml.safe_load(path.read_text()) for path in FILES]
    assert len(FILES) == 36 + 1 + 2 + 7 + 3 + 2  # the paper's and one more; ESAN's own wiring; ZINC, counting, CSL
    assert all(a != b for i, a in enumerate(read) for b in read[:i])


def small(config: Config) -> Benchmark:
    """A few random graphs like those of a config's dataset."""
    rng, graphs = np.random.default_rng(0), []
    zinc, nodes = config.dataset.startswith("ZINC"), config.dataset == "counting"
    for n in rng.integers(4, 8, 12):
        once = np.array([(i, j) for j in range(n) for i in range(j) if j == i + 1 or rng.random() < 0.2])
        both = np.concatenate([once, once[:, ::-1]]).T
        bonds = np.tile(rng.integers(1, 4, len(once)), 2)
        y = rng.integers(0, 10, 1) if config.dataset == "CSL" else rng.normal(size=(n if nodes else 1, 1))
        data = Data(torch.from_numpy(rng.integers(0, 28 if zinc else 1, (n, 1))), torch.from_numpy(both), y=torch.from_numpy(y))
        graphs.append(data)
        if zinc:
            data.edge_attr = torch.from_numpy(bonds)[:, None]
    parts = {part: np.arange(4 * k, 4 * k + 4) for k, part in enumerate(("train", "valid", "test"))}
    level = "node" if nodes else "graph"
    if config.dataset == "CSL":
        return from_graphs(graphs, num_outputs=10, splits=parts)
    channels = {"in_channels": [28], "edge_channels": [4]} if zinc else {"in_channels": [1]}
    return from_graphs(graphs, metric="mae", splits=parts, level=level, **channels)


@pytest.mark.parametrize(
    "path", [f for f in FILES if f.stem.startswith(("ZINC", "counting", "CSL"))], ids=lambda path: path.stem
)
def test_a_step_of_a_small_version_trains(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightning", reason="training needs the extra enfa[train]")
    from enfa.training.start import prepare

    config = replace(shipped(path), hidden_channels=12, num_layers=2, accelerator="cpu", target=None)
    if config.policy not in policies.POLICIES:
        pytest.skip(f"the policy {config.policy} is not known here")
    monkeypatch.setattr(prepare, "open_benchmark", small)
    module = (made := prepare.prepare(config)).module
    optimiser = module.configure_optimizers()["optimizer"]
    before = {name: p.detach().clone() for name, p in module.named_parameters()}
    loss = module.loss(made.batches.compiled[:4])
    loss.backward()
    optimiser.step()
    assert loss.isfinite() and module.objective.name == ("mse" if config.dataset == "CSL" else "l1")
    assert any(not torch.equal(p, before[name]) for name, p in module.named_parameters())


def test_models_on_zinc_have_half_a_million_parameters() -> None:
    """The budget of the field, which SUN's own setting exceeds by little."""
    problem = Problem("regression", "mae", 1, [28], [4])
    for path in FILES:
        if path.stem.startswith("ZINC-") and yaml.safe_load(path.read_text()).get("model") in MODELS:
            count = sum(p.numel() for p in make_model(read_config(path), problem).parameters())
            assert 350_000 < count < 530_000, (path.stem, count)
