"""``enfa train`` on a dataset in shards."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import enfa
from enfa.training import fit, read_config
from enfa.training.build import open_benchmark
from enfa.training.checkpoint import load_checkpoint
from enfa.training.loop.module import TrainingModule
from enfa.training.problem import Problem
from enfa.training.settings.folder import LAST, folder_of
from enfa.training.start.prepare import prepare


@pytest.mark.parametrize("graphed", [False, True])
def test_a_run_on_shards_is_a_run_on_one_table(
    config_file: Callable[..., Path], make_npz: Callable[..., Path], tmp_path: Path, graphed: bool
) -> None:
    """With one batch an epoch, whose graphs may stand in any order."""
    split = {"split_train": np.arange(30), "split_valid": np.arange(30, 35), "split_test": np.arange(35, 40)}
    path = config_file(dataset=str(make_npz(np.arange(40) % 2, **split)), batch_size=30, epochs=3, graphed=graphed)
    one = read_config(path, ["name=one"])
    two = read_config(path, ["name=two", f"shards={tmp_path / 'shards'}", "shard_memory=1 MiB"])
    for config in (one, two):
        fit(config, progress=False)
    found, expected = (load_checkpoint(folder_of(config) / LAST) for config in (two, one))
    assert (tmp_path / "shards" / "manifest.json").is_file() and found["global_step"] == 3
    for name, value in expected["state_dict"].items():
        if "bias" not in name:  # Adam divides gradients that are zero but for rounding by their size
            torch.testing.assert_close(found["state_dict"][name], value, rtol=1e-9, atol=1e-9)
    for a, b in zip(found["enfa"]["curve"], expected["enfa"]["curve"], strict=True):
        assert a["loss"] == pytest.approx(b["loss"], rel=1e-9)


def test_what_shards_do_not_do_is_refused(config_file: Callable[..., Path], tmp_path: Path) -> None:
    path = config_file()
    with pytest.raises(ValueError, match="Expected either cache or shards"):
        read_config(path, ["cache=a", "shards=b"])
    with pytest.raises(ValueError, match="such as '2 GiB', got 'much'"):
        read_config(path, ["shard_memory=much"])
    config = read_config(path, [f"shards={tmp_path / 'shards'}"])
    data = open_benchmark(config)
    model = TrainingModule(config, Problem.of(data)).model
    enfa.compile(data.graphs, enfa.NodeMarking(), model, out=tmp_path / "shards", shard_size=7, progress=False, workers=1)
    assert len(prepare(config).batches.compiled.shards) == 6  # as they are there
    with pytest.raises(ValueError, match="holds shards of something else"):
        prepare(replace(config, policy="node_deletion"))
