"""Reading checkpoints: plain tensors and values only, and only those that fit the model."""

from __future__ import annotations

import pickle
import zipfile
from collections.abc import Iterable
from dataclasses import fields
from pathlib import Path
from typing import Any

import torch

from enfa.nn.models.base import SubgraphGNN
from enfa.training.build import Problem, make_model
from enfa.training.config import MODEL, RUNS_ON, Config

__all__ = ["check_same_model", "check_same_run", "load_checkpoint", "load_model", "trained_on"]


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Everything in a checkpoint. Nothing in it is executed (``weights_only=True``)."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint {path}")
    try:
        checkpoint = torch.load(path, map_location="cpu", weights_only=True)
    except (pickle.UnpicklingError, RuntimeError, EOFError, zipfile.BadZipFile, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise ValueError(f"{path} is damaged, or no checkpoint of plain tensors ({reason})") from error
    if not isinstance(checkpoint, dict) or "enfa" not in checkpoint:
        raise ValueError(f"{path} is no checkpoint of enfa train")
    return checkpoint


def _config(checkpoint: dict[str, Any]) -> Config:
    return Config.make(checkpoint["enfa"]["config"])


def _differences(there: Config, here: Config, names: Iterable[str]) -> str:
    return ", ".join(
        f"{name} is {getattr(there, name)!r} there and {getattr(here, name)!r} here"
        for name in names
        if getattr(there, name) != getattr(here, name)
    )


def check_same_model(path: str | Path, checkpoint: dict[str, Any], config: Config, problem: Problem) -> None:
    """Refuse a checkpoint whose weights belong into another model."""
    differ = _differences(_config(checkpoint), config, MODEL)
    if differ:
        raise ValueError(f"{path} is a checkpoint of another model: {differ}")
    there = Problem(**checkpoint["enfa"]["problem"])
    if there != problem:
        raise ValueError(f"{path} was trained for other data: {there} there, {problem} here")


def check_same_run(path: str | Path, checkpoint: dict[str, Any], config: Config) -> None:
    """Refuse to continue a run with settings that would have made another run of it."""
    differ = _differences(_config(checkpoint), config, [f.name for f in fields(Config) if f.name not in RUNS_ON])
    if differ:
        raise ValueError(f"{path} cannot be resumed with other settings: {differ}")


def load_model(path: str | Path) -> tuple[SubgraphGNN, Config, Problem]:
    """The trained model of a checkpoint, in evaluation mode, with its settings."""
    checkpoint = load_checkpoint(path)
    config, problem = _config(checkpoint), Problem(**checkpoint["enfa"]["problem"])
    model = make_model(config, problem)
    prefix = "model."
    state = {k.removeprefix(prefix): v for k, v in checkpoint["state_dict"].items() if k.startswith(prefix)}
    model.load_state_dict(state)
    return model.eval(), config, problem


def trained_on(path: str | Path) -> str:
    """One line: the dataset, fold, policy and model of a checkpoint, its epoch and what it scored there.

    Epochs count from 0, as in ``metrics.csv``.
    """
    checkpoint = load_checkpoint(path)
    config, curve = _config(checkpoint), checkpoint["enfa"]["curve"]
    parameters = ", ".join(f"{name}={value}" for name, value in config.policy_params.items())
    policy = f"{config.policy}({parameters})" if parameters else config.policy
    line = f"trained on {config.dataset} (fold {config.fold}, seed {config.seed}) with {policy}, {config.model}, {config.conv}"
    if not curve:
        return f"{line}; saved before its first epoch ended"
    metric = checkpoint["enfa"]["problem"]["metric"]
    return f"{line}; epoch {curve[-1]['epoch']}, validation {metric} {curve[-1]['score']:.4f}"
