"""Two processes on half-batches against one on whole batches."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import code_of_mine
import numpy as np
import pytest
import torch

from enfa.nn.ops.norm import CountedBatchNorm
from enfa.training import Config, fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.settings.folder import LAST, folder_of
from enfa.training.start.prepare import across_devices


def last(config: Config) -> dict[str, Any]:
    return load_checkpoint(folder_of(config) / LAST)


def _assert_same(one: dict[str, Any], two: dict[str, Any], steps: int) -> None:
    assert one["global_step"] == two["global_step"] == steps
    assert any("running_var" in key for key in one["state_dict"])
    for key, value in one["state_dict"].items():
        torch.testing.assert_close(two["state_dict"][key], value, rtol=1e-6, atol=1e-6, msg=lambda m, k=key: f"{k}: {m}")
    for a, b in zip(one["enfa"]["curve"], two["enfa"]["curve"], strict=True):
        assert a == pytest.approx(b, abs=1e-6)


# Batches of 9 out of 36 graphs give 4 steps an epoch; 37 graphs a fifth batch of a single graph, so that the second
# rank has none.
@pytest.mark.parametrize(
    ("kind", "graphs", "model"), [("classes", 41, "dss"), pytest.param("tasks", 37, "ds", marks=pytest.mark.long)]
)
def test_two_processes_are_one(
    enfa: Callable[..., subprocess.CompletedProcess[str]],
    config_file: Callable[..., Path],
    make_npz: Callable[..., Path],
    kind: str,
    graphs: int,
    model: str,
) -> None:
    y = np.arange(graphs + 10) % 2
    if kind == "tasks":
        y = np.random.default_rng(0).integers(0, 2, (graphs + 10, 3)).astype(np.float32)
        y[::3, 1] = np.nan  # the ranks then have different numbers of labels
        y[1::4, 2] = np.nan
    held = np.arange(graphs, graphs + 10)
    split = {"split_train": np.arange(graphs), "split_valid": held, "split_test": held}
    path = config_file(dataset=str(make_npz(y, **split)), batch_size=9, epochs=4, model=model)
    one, two = (read_config(path, [f"name={name}"]) for name in ("one", "two"))
    fit(one, progress=False)
    resumed = kind == "tasks"
    if resumed:  # two processes go on where one stopped
        fit(replace(two, epochs=1), progress=False)
    result = enfa("train", path, "devices=2", "name=two", "--no-progress", *["--resume"] * resumed)
    assert result.returncode == 0, result.stderr
    _assert_same(last(one), last(two), 20)
    if resumed:  # and one where two stopped
        for config in (one, two):
            fit(replace(config, epochs=5), resume=True, progress=False)
        _assert_same(last(one), last(two), 25)


def test_norms_of_ones_own_take_the_statistics_of_all_processes(
    enfa: Callable[..., subprocess.CompletedProcess[str]], config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)
    own = {"model": "Normed", "num_layers": 4, "hidden_channels": 32, "jk": None, "precision": "64", "epochs": 2}
    path = config_file(**own)
    one, two = (read_config(path, [f"name={name}"]) for name in ("one", "two"))
    fit(one, progress=False)
    result = enfa("train", path, "devices=2", "name=two", "--no-progress")
    assert result.returncode == 0, result.stderr
    _assert_same(last(one), last(two), last(one)["global_step"])


def test_a_parameter_without_a_gradient_is_named(
    enfa: Callable[..., subprocess.CompletedProcess[str]], config_file: Callable[..., Path], tmp_path: Path
) -> None:
    file = tmp_path / "spare_part.py"
    file.write_text(
        "import enfa\nimport torch\n\n\nclass Spare(enfa.DSGNN):\n    def __init__(self, *args, **options):\n"
        "        super().__init__(*args, **options)\n        self.spare = torch.nn.Linear(2, 2)\n"
    )
    result = enfa("train", config_file(model="Spare"), "devices=2", "--no-progress", "--code", file)
    said = "Error: Expected every parameter to have a gradient with devices=2, got none for spare.weight, spare.bias: let"
    assert result.returncode == 2 and said in result.stderr and "Traceback" not in result.stderr, result.stderr


def test_norms_that_cannot_are_refused() -> None:
    class Own(torch.nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:
            return super().forward(input) * 2

    for norm in (Own(3), torch.nn.BatchNorm2d(3)):
        with pytest.raises(ValueError, match=rf"Expected torch.nn.BatchNorm1d of a model .*, got {type(norm).__name__} \(1\)"):
            across_devices(torch.nn.Sequential(torch.nn.BatchNorm1d(3), norm))
    assert [type(part) for part in across_devices(torch.nn.Sequential(torch.nn.BatchNorm1d(3)))] == [CountedBatchNorm]
