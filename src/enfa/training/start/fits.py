"""Whether a checkpoint fits the model, the data and the run that it is wanted for; refused in a sentence where it does not."""

from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from enfa.datasets.known import is_table
from enfa.training.problem import Problem
from enfa.training.settings.config import MODEL, RUNS_ON, Config
from enfa.training.settings.folder import check_same_data, fingerprint

__all__ = ["check_resumable", "check_same_model", "check_same_split", "check_weights", "config_of", "version_of"]

_TO_RESUME = ("epoch", "global_step", "loops", "callbacks", "optimizer_states", "lr_schedulers")


def version_of(checkpoint: dict[str, Any]) -> str:
    """In words: which version has written it."""
    from enfa import __version__

    there = checkpoint["enfa"].get("version")
    if there == __version__:
        return "a damaged checkpoint"
    return f"a checkpoint of another version ({there!r} there, {__version__!r} here)"


def config_of(checkpoint: dict[str, Any]) -> Config:
    return Config.make(checkpoint["enfa"]["config"])


def check_weights(path: str | Path, checkpoint: dict[str, Any], module: nn.Module) -> None:
    """Refuse a checkpoint that lacks a weight of the module, or has one of another shape, or one more."""

    def shape(value: Any) -> list[int] | None:
        return list(value.shape) if isinstance(value, Tensor) else None

    there = {name: shape(value) for name, value in checkpoint["state_dict"].items()}
    # of a lazy module that has seen no data it is what is loaded
    here = {name: there.get(name) if is_lazy(value) else shape(value) for name, value in module.state_dict().items()}
    for name in sorted(there.keys() | here.keys()):
        if name not in there or name not in here or there[name] != here[name]:
            expected = f"'{name}' of shape {here[name]}" if name in here else f"no '{name}'"
            got = f"one of shape {there[name]}" if name in there else "none"
            code = checkpoint["enfa"].get("code")  # of the user's own, which may have changed
            what = (
                f"not of the model that {', '.join(code)} makes now"
                if code and isinstance(code, dict)
                else version_of(checkpoint)
            )
            raise ValueError(f"{path} is {what}: Expected {expected}, got {got}")


def check_resumable(path: str | Path, checkpoint: dict[str, Any], config: Config) -> None:
    """Refuse to continue from weights alone, with other settings or other data, or to an end that has been passed."""
    _check_same_run(path, checkpoint, config)
    check_same_data(Path(path), checkpoint["enfa"].get("data"), fingerprint(config), config)
    missing = [name for name in _TO_RESUME if name not in checkpoint]
    if missing:
        raise ValueError(f"{path} cannot be resumed: Expected it to hold {', '.join(missing)}, got weights only")
    done = len(checkpoint["enfa"]["curve"])
    if config.epochs < done:
        raise ValueError(
            f"{path} has {done} epochs behind it: Expected epochs >= {done} to go on from there, got {config.epochs}; "
            f"another 'out' or 'name' begins anew"
        )


def _differences(there: Config, here: Config, names: Iterable[str]) -> str:
    return ", ".join(
        f"{name} is {getattr(there, name)!r} there and {getattr(here, name)!r} here"
        for name in names
        if getattr(there, name) != getattr(here, name)
    )


def check_same_model(path: str | Path, checkpoint: dict[str, Any], config: Config, problem: Problem) -> None:
    """Refuse a checkpoint whose weights belong into another model."""
    differ = _differences(config_of(checkpoint), config, MODEL)
    if differ:
        raise ValueError(f"{path} is a checkpoint of another model: {differ}")
    there = Problem(**checkpoint["enfa"]["problem"])
    if there != problem:
        raise ValueError(f"{path} was trained for other data: {there} there, {problem} here")


def _of_split(config: Config, official: bool) -> tuple[str, ...]:
    """The settings that say which graphs, or nodes, are in which part; of an official split there are none."""
    if config.level != "graphs":
        return ("fold",) if config.level == "nodes" else ("fold_seed",)
    if is_table(config.dataset):
        return ("split", "fold_seed") if config.split == "random" else ("split",)
    return () if official else ("fold", "fold_seed", "validation")


def check_same_split(path: str | Path, checkpoint: dict[str, Any], config: Config, official: bool) -> None:
    """Refuse to score on graphs that the weights were trained on: another split of the same data has some in every part."""
    there, here = (
        replace(of, split="random") if is_table(of.dataset) and of.split is None else of
        for of in (config_of(checkpoint), config)
    )
    differ = _differences(there, here, _of_split(here, official))
    if differ:
        raise ValueError(
            f"{path} was trained on another part of the data ({differ}): Expected the split that it was trained with, got one "
            f"in which graphs to test on may be among those it has seen"
        )


def _check_same_run(path: str | Path, checkpoint: dict[str, Any], config: Config) -> None:
    """Refuse to continue a run with settings that would have made another run of it."""
    fixed = [f.name for f in fields(Config) if f.name not in RUNS_ON]
    if config.schedule == "cosine":  # the learning rate of every epoch depends on how many there are
        fixed.append("epochs")
    differ = _differences(config_of(checkpoint), config, fixed)
    if differ:
        raise ValueError(f"{path} cannot be resumed with other settings: {differ}")
