"""Checkpoints that are written whole or not at all, and that name no file but those beside them. Needs Lightning."""

import io
import os
from pathlib import Path
from typing import Any

import torch

from enfa.atomic import write_atomically
from enfa.training.loop.lightning import pl
from enfa.training.settings.folder import BEST

__all__ = ["WholeCheckpoints"]


def _at_home(state: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What ModelCheckpoint keeps, with this run's folder wherever it says one: it deletes the files that it finds there."""
    here = os.path.realpath(folder)
    best = os.path.join(here, BEST) if state["best_model_path"] else ""
    paths = {"dirpath": here, "best_model_path": best, "kth_best_model_path": best, "last_model_path": ""}
    return {**state, **paths, "best_k_models": {best: state.get("best_model_score")} if best else {}}


class WholeCheckpoints(pl.plugins.TorchCheckpointIO):
    """A full disk leaves the old checkpoint, and an error that names the file."""

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        data = io.BytesIO()
        torch.save(checkpoint, data)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(Path(path), (data.getvalue(),))

    def load_checkpoint(self, path: Any, *args: Any, **options: Any) -> dict[str, Any]:
        checkpoint = super().load_checkpoint(path, *args, **options)
        states = checkpoint.get("callbacks", {})
        for name, state in states.items():
            if isinstance(state, dict) and "best_model_path" in state:
                states[name] = _at_home(state, Path(path).parent)
        return checkpoint
