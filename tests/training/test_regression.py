"""Numbers to predict, of graphs and of nodes."""

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from enfa.training import Config, evaluate, fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.results.collect import Results
from enfa.training.results.table import markdown
from enfa.training.score import TargetMean, summed_loss
from enfa.training.settings.folder import BEST, LAST, folder_of
from enfa.training.start.prepare import prepare
from enfa.training.trained.predict import predict

Write = Callable[..., Path]
PARTS = {"split_train": np.arange(20), "split_valid": np.arange(20, 30), "split_test": np.arange(30, 40)}


@pytest.fixture
def numbers(make_npz: Callable[..., Path]) -> str:
    """A target that message passing can learn: how many nodes a graph has; and one that was measured here and there."""
    return str(make_npz(np.random.default_rng(0).normal(size=40), "numbers", **PARTS))


def curve(config: Config, name: str = LAST) -> list[dict[str, float]]:
    return load_checkpoint(folder_of(config) / name)["enfa"]["curve"]


def test_lower_is_better_from_the_checkpoint_to_the_table(config_file: Write, numbers: str, tmp_path: Path) -> None:
    config = read_config(config_file(dataset=numbers, epochs=6, lr=0.05))
    record = fit(config, progress=False)
    assert record is not None and record.metric == "mae" and record.test is not None
    assert record.valid == min(record.score) < max(record.score)
    assert curve(config, BEST)[-1]["epoch"] == record.best_epoch == int(np.argmin(record.score))
    assert evaluate(config, part="valid", progress=False) == pytest.approx(record.valid, abs=1e-6)
    results = Results.open(tmp_path / "results", config)
    results.add(record)
    assert f"{record.test:.4f}" in markdown([results]) and str(results.summary()) == f"{record.test:.4f}"
    assert json.loads((folder_of(config) / "result.json").read_text())["metric"] == "mae"


def test_the_loss_is_the_absolute_error_where_that_is_the_metric(config_file: Write, numbers: str) -> None:
    config = read_config(config_file(dataset=numbers))
    run = prepare(config)
    plan = run.batches.compiled[:8]
    known = run.batches.compiled.y[:20].double()  # of the graphs to train on
    error = run.module.model(plan) - (plan.y - known.mean()) / known.std(correction=0)
    assert run.module.loss(plan).item() == pytest.approx(error.abs().mean().item())
    squared = prepare(read_config(config_file(dataset=numbers), ["loss=mse"])).module
    assert squared.loss(plan).item() == pytest.approx(error.square().mean().item())
    assert prepare(read_config(config_file(dataset=numbers), ["metric=r2"])).module.objective.name == "mse"
    with pytest.raises(ValueError, match="Expected no loss=l1 where labels are no numbers, got a multiclass task"):
        prepare(read_config(config_file(), ["loss=l1"]))


@pytest.mark.parametrize("metric", ["mae", "mse", "r2"])
def test_metrics_are_those_of_torchmetrics(metric: str) -> None:
    import torchmetrics.functional.regression as known

    torch.manual_seed(0)
    y, found = torch.randn(50, 3) + 4, torch.randn(50, 3) + 4
    y[::7, 1] = float("nan")
    score = TargetMean(metric)
    for part in range(0, 50, 12):
        score.update(found[part : part + 12], y[part : part + 12])
    of = {"mae": known.mean_absolute_error, "mse": known.mean_squared_error, "r2": known.r2_score}[metric]
    rows = [~column.isnan() for column in y.T]
    expected = np.mean([of(found[r, k], y[r, k]).item() for k, r in enumerate(rows)])
    assert float(score.compute()) == pytest.approx(expected, rel=1e-5)


def test_what_was_not_measured_counts_nowhere() -> None:
    y = torch.tensor([[1.0, float("nan")], [float("nan"), 2.0]])
    found = torch.tensor([[0.0, float("inf")], [float("nan"), 5.0]], requires_grad=True)
    total, count = summed_loss(found, y, "regression", "l1")
    assert (total.item(), count.item()) == (4.0, 2.0)
    total.backward()
    assert found.grad is not None and found.grad.tolist() == [[-1.0, 0.0], [0.0, 1.0]]
    with pytest.raises(ValueError, match=r"Expected outputs of the labels' shape \[2, 2\], got \[2, 1\]"):
        summed_loss(found[:, :1], y, "regression", "l1")


def test_early_stopping_and_target_go_down(config_file: Write, numbers: str) -> None:
    path = config_file(dataset=numbers, epochs=30)
    stopped = fit(read_config(path, ["early_stopping=2", "lr=1e-12", "name=a"]), progress=False)
    assert stopped is not None and stopped.ended == "early stopping" and stopped.best_epoch == stopped.epochs - 3
    target = fit(read_config(path, ["stop_at=1.0", "name=b", "lr=0.05"]), progress=False)
    assert target is not None and target.ended == "target reached" and target.score[-1] <= 1.0 + 1e-6
    assert target.epochs == 1 or target.score[-2] > 1.0


@pytest.mark.parametrize("graphed", [False, True])
@pytest.mark.parametrize("schedule", ["plateau", "cosine"])
def test_schedules_resume_bit_for_bit(config_file: Write, numbers: str, schedule: str, graphed: bool) -> None:
    more = {"epochs": 6} if schedule == "cosine" else {"epochs": 14, "patience": 1, "min_lr": 0.02}
    path = config_file(dataset=numbers, schedule=schedule, lr=0.1, graphed=graphed, precision="32", **more)
    whole = read_config(path, ["name=whole"])
    fit(whole, progress=False)
    parts = read_config(path, ["name=parts"])
    if schedule == "cosine":  # whose end must stay where it is
        fit(parts, progress=False, deadline=time.monotonic())
    else:
        fit(read_config(path, ["name=parts", "epochs=5"]), progress=False)
    fit(parts, resume=True, progress=False)
    assert curve(whole) == curve(parts)
    rates = [row["lr"] for row in curve(whole)]
    if schedule == "cosine":
        assert rates == pytest.approx([0.1 * (1 + np.cos(np.pi * k / 6)) / 2 for k in range(6)], rel=1e-6)
    else:
        scores = [row["score"] for row in curve(whole)]
        assert rates == pytest.approx(rates_on_plateaus(scores), rel=1e-6) and rates[-1] == pytest.approx(0.02)


def rates_on_plateaus(scores: list[float]) -> list[float]:
    """Halved after two epochs in a row that are no better, but not below 0.02."""
    rates, best, bad = [0.1], float("inf"), 0
    for score in scores[:-1]:
        bad = 0 if score < best * (1 - 1e-4) else bad + 1
        best = score if bad == 0 else best
        rates.append(max(rates[-1] / 2, 0.02) if bad > 1 else rates[-1])
        bad = 0 if bad > 1 else bad
    return rates


def test_cosine_is_not_resumed_to_another_length(config_file: Write, numbers: str) -> None:
    path = config_file(dataset=numbers, schedule="cosine", epochs=2)
    fit(read_config(path), progress=False)
    with pytest.raises(ValueError, match="cannot be resumed with other settings: epochs is 2 there and 3 here"):
        fit(read_config(path, ["epochs=3"]), resume=True, progress=False)


def test_padded_batches_train_alike(config_file: Write, numbers: str) -> None:
    path = config_file(dataset=numbers, batch_size=6, schedule="plateau", patience=1)
    configs = [read_config(path, [f"graphed={g}", f"name=is-{g}"]) for g in ("false", "true")]
    for config in configs:
        fit(config, progress=False)
    for a, b in zip(curve(configs[0]), curve(configs[1]), strict=True):
        assert a == pytest.approx(b, rel=1e-9)


@pytest.fixture
def of_nodes(tmp_path: Path, npz: Path) -> str:
    """What each node has: its degree, and another number that is missing here and there."""
    with np.load(npz) as file:
        arrays = {key: file[key] for key in file.files if key != "y"}
    n, m = arrays["num_nodes"], arrays["num_edges"]
    ends = (arrays["edges"] + np.repeat(np.cumsum(n) - n, m)[:, None]).ravel()
    other = np.where(np.arange(n.sum()) % 5 == 0, np.nan, np.arange(n.sum()) % 3)
    path = tmp_path / "of_nodes.npz"
    np.savez(path, node_y=np.stack([np.bincount(ends, minlength=n.sum()), other], 1), **arrays, **PARTS)
    return str(path)


@pytest.mark.parametrize(
    "settings",
    [{"readout": "root"}, {"readout": "node"}, {"readout": "root", "policy": "ego_nets", "policy_params": {"hops": 2}}],
)
def test_numbers_of_nodes_are_learned(config_file: Write, of_nodes: str, settings: dict[str, object], tmp_path: Path) -> None:
    config = read_config(config_file(dataset=of_nodes, epochs=40, lr=0.02, **settings))
    record = fit(config, progress=False)
    assert record is not None and record.test is not None
    assert evaluate(config, progress=False) == pytest.approx(record.test, abs=1e-6)
    rows = predict(folder_of(config) / BEST, Path(of_nodes))
    with np.load(of_nodes) as file:
        truth, nodes = file["node_y"], file["num_nodes"]
    std = np.nanstd(truth[: nodes[:20].sum()], 0)
    tested = np.arange(nodes[:30].sum(), nodes.sum())
    found = np.array([[row["y0"], row["y1"]] for row in rows])
    assert len(rows) == nodes.sum() and [rows[tested[0]][key] for key in ("graph", "node")] == [30, 0]
    errors = np.nanmean(abs(found - truth)[tested] / std, 0)
    spread = abs(truth - np.mean(truth, 0))[tested, 0].mean() / std[0]
    assert errors[0] < 0.5 * spread, "the other number follows from nothing that is there"
    assert errors.mean() == pytest.approx(record.test, rel=1e-6)


def test_outputs_must_be_of_what_has_labels(config_file: Write, of_nodes: str, numbers: str) -> None:
    with pytest.raises(ValueError, match="Expected readout root or node, because labels are those of nodes, got 'sum'"):
        prepare(read_config(config_file(dataset=of_nodes)))
    with pytest.raises(ValueError, match="Expected readout sum, mean or max, because labels are those of graphs, got 'root'"):
        prepare(read_config(config_file(dataset=numbers, readout="root")))
    run = prepare(read_config(config_file(dataset=of_nodes, readout="root", policy="edge_marking", conv="gine")))
    with pytest.raises(ValueError, match="Expected a policy whose roots are nodes"):
        run.module.loss(run.batches.compiled[:3])


def test_predictions_are_in_the_units_of_the_data(config_file: Write, numbers: str, monkeypatch: pytest.MonkeyPatch) -> None:
    config = read_config(config_file(dataset=numbers, epochs=1))
    fit(config, progress=False)
    checkpoint = load_checkpoint(folder_of(config) / LAST)
    checkpoint["enfa"]["problem"] |= {"mean": None, "std": None}
    torch.save(checkpoint, folder_of(config) / LAST)
    plain = [row["y0"] for row in predict(folder_of(config) / LAST, Path(numbers))]
    checkpoint["enfa"]["problem"] |= {"mean": [3.0], "std": [2.0], "targets": ["logp"]}
    torch.save(checkpoint, folder_of(config) / LAST)
    scaled = [row["logp"] for row in predict(folder_of(config) / LAST, Path(numbers))]
    assert scaled == pytest.approx([2 * value + 3 for value in plain])


def test_a_target_that_no_graph_has_is_refused(config_file: Write, make_npz: Callable[..., Path]) -> None:
    y = np.stack([np.full(40, np.nan), np.arange(40) + 0.5], 1)
    path = str(make_npz(y, "empty", targets=np.array(["first", "second"]), **PARTS))
    with pytest.raises(ValueError, match="Expected labels of every target, got none of first: leave it out, or name a target"):
        prepare(read_config(config_file(dataset=path, metric="mae")))
    prepare(read_config(config_file(dataset=path, metric="mae", target="second")))


@pytest.mark.parametrize("parts", [PARTS, {}])
@pytest.mark.parametrize("graphed", [False, True])
def test_numbers_of_a_file_are_standardised(
    config_file: Write, make_npz: Callable[..., Path], graphed: bool, parts: dict[str, np.ndarray]
) -> None:
    """As those of a CSV file: a target in the thousands is learnt as its deviations are, and told in its own units."""
    small = np.random.default_rng(1).normal(size=40)
    paths = [make_npz(small * scale + mean, f"mean-{mean}", **parts) for scale, mean in ((1.0, 0.0), (512.0, 4096.0))]
    options = {"epochs": 3, "batch_size": 6, "graphed": graphed, "precision": "32"}
    made = [read_config(config_file(dataset=str(path), name=path.stem, **options)) for path in paths]
    one, other = (fit(config, progress=False) for config in made)
    assert one is not None and other is not None and one.std is not None and other.std is not None
    split = prepare(made[1]).batches.split
    y = small * 512.0 + 4096.0
    assert other.std == pytest.approx([y[split["train"]].std()], rel=1e-6)
    assert other.loss == pytest.approx(one.loss, rel=1e-3) and other.score == pytest.approx(one.score, rel=1e-3)
    assert other.test == pytest.approx(one.test, rel=1e-3)
    found = np.array([row["y0"] for row in predict(folder_of(made[1]) / BEST, paths[1])])
    assert abs(found - y)[split["test"]].mean() / other.std[0] == pytest.approx(other.test, rel=1e-3)
    assert evaluate(made[1], progress=False) == pytest.approx(other.test, rel=1e-6)
    assert "in units of y" in other.units(other.test or 0.0)


def test_a_checkpoint_keeps_the_units_it_was_trained_in(config_file: Write, numbers: str) -> None:
    """Checkpoints of versions that standardised no numbers of .npz files are tested and gone on with as they began."""
    config = read_config(config_file(dataset=numbers, epochs=1))
    fit(config, progress=False)
    for name in (BEST, LAST):
        checkpoint = load_checkpoint(folder_of(config) / name)
        checkpoint["enfa"]["problem"] |= {"mean": None, "std": None}
        torch.save(checkpoint, folder_of(config) / name)
    found = np.array([row["y0"] for row in predict(folder_of(config) / BEST, Path(numbers))])
    with np.load(numbers) as file:
        error = abs(found - file["y"])[30:].mean()
    assert evaluate(config, progress=False) == pytest.approx(error, rel=1e-5)
    record = fit(read_config(config_file(dataset=numbers, epochs=2)), resume=True, progress=False)
    assert record is not None and record.std is None


def test_a_target_without_a_training_number_is_refused(config_file: Write, make_npz: Callable[..., Path]) -> None:
    y = np.stack([np.where(np.arange(40) < 20, np.nan, 0.5), np.arange(40) + 0.5], 1)
    path = str(make_npz(y, "late", targets=np.array(["first", "second"]), **PARTS))
    with pytest.raises(ValueError, match="late: Expected at least one training graph with a number for 'first', got none"):
        prepare(read_config(config_file(dataset=path, metric="mae")))
