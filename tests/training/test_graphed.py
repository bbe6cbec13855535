"""Training on padded, packed batches is training."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from enfa.training import fit, read_config
from enfa.training.checkpoint import load_checkpoint
from enfa.training.run import BEST, LAST, folder_of

Write = Callable[..., Path]


def _train(path: Path, *overrides: str, resume: bool = False) -> dict:
    config = read_config(path, overrides)
    fit(config, resume=resume, progress=False)
    found = load_checkpoint(folder_of(config) / LAST)
    assert (folder_of(config) / BEST).exists()
    return found


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("workers", [0, 2])
def test_same_curve_as_ungraphed(config_file: Write, model: str, dropout: float, workers: int) -> None:
    path = config_file(model=model, dropout=dropout, num_workers=workers)
    plain, packed = (_train(path, f"graphed={g}", f"name=is-{g}") for g in ("false", "true"))
    assert plain["global_step"] == packed["global_step"]
    assert plain["epoch"] == packed["epoch"] and plain["lr_schedulers"] == packed["lr_schedulers"]
    for a, b in zip(plain["enfa"]["curve"], packed["enfa"]["curve"]):
        assert a == pytest.approx(b, rel=1e-10)
    for key, value in plain["state_dict"].items():
        torch.testing.assert_close(packed["state_dict"][key], value, rtol=1e-7, atol=1e-8)
