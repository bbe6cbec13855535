"""Outputs of loaded models, in words that users have: as ``enfa predict`` writes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from paths import paths_in

import enfa
from enfa.datasets import from_npz
from enfa.training import fit, predictions, read_config
from enfa.training.settings.folder import folder_of
from enfa.training.trained.predict import outputs

LABELS = {
    "numbers": np.linspace(990.0, 1010.0, 40),
    "classes": np.arange(40) % 3,
    "tasks": (np.arange(80).reshape(40, 2) % 3 == 0).astype(float),
}


@pytest.mark.parametrize("kind", LABELS)
def test_they_are_those_of_predict(kind: str, tmp_path: Path) -> None:
    file = paths_in(tmp_path)
    np.savez(file, **dict(np.load(file)) | {"y": LABELS[kind]})
    config = read_config(file, ["epochs=1", f"out={tmp_path}", "accelerator=cpu"])
    fit(config, progress=False)
    model, graphs = enfa.load(folder_of(config)), list(from_npz(file).graphs)
    raw = model(enfa.make_plan(graphs, model.policy, model))  # type: ignore[arg-type]
    found = predictions(model, raw)
    torch.testing.assert_close(found, outputs(folder_of(config), graphs).values)
    if kind == "numbers":
        assert raw.abs().max() < 100 and found.min() > 900
    else:
        torch.testing.assert_close(found, (raw.softmax(1) if kind == "classes" else raw.sigmoid()).double())
    with pytest.raises(ValueError, match=rf"^Expected outputs of the model, of shape \[rows, {raw.shape[1]}\], got \[40\]$"):
        predictions(model, raw[:, 0])
    assert predictions.__name__ in str(enfa.load.__doc__)


def test_a_model_that_was_never_trained_says_nothing() -> None:
    with pytest.raises(ValueError, match=r"^Expected a model from enfa.load .* its task, got DSGNN without one$"):
        predictions(enfa.DSGNN(3, 4, 2, 2), torch.zeros(1, 2))
