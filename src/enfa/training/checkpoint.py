"""Reading checkpoints: plain tensors and values only, and only those that fit the model."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from enfa.datasets.known import is_table
from enfa.graphs.names import Unnamed
from enfa.nn.models.pretrained import CONFIG, load_pretrained
from enfa.training.build import Problem, make_model, make_policy
from enfa.training.metrics import in_units
from enfa.training.settings.code import tell_changed_code
from enfa.training.settings.config import MODEL, RUNS_ON, Config
from enfa.training.settings.folder import check_same_data, fingerprint
from enfa.training.trained.members import one_model

__all__ = [
    "FORMAT", "check_resumable", "check_same_model", "check_same_split", "check_weights", "load", "load_checkpoint",
    "load_model", "trained_on",
]  # fmt: skip


# what enfa train writes beside Lightning's own: checked here, because a file with another layout would fail anywhere
FORMAT = 2  # 2: models on the verbs of a bag, whose weights have other names, and dropout without buffers
_PARTS: dict[str, type | tuple[type, ...]] = {
    "version": str, "config": dict, "problem": dict, "curve": list, "seconds": (int, float), "state_dict": dict,
}  # fmt: skip
_TO_RESUME = ("epoch", "global_step", "loops", "callbacks", "optimizer_states", "lr_schedulers")


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """Everything in a checkpoint. Nothing in it is executed (``weights_only=True``)."""
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no checkpoint {path}")
    if not path.stat().st_size:
        raise ValueError(f"{path} is empty: Expected a checkpoint of enfa train")
    with path.open("rb") as file:
        try:
            checkpoint = torch.load(file, map_location="cpu", weights_only=True)
        except Exception as error:  # whatever unpickling some bytes may come to
            reason = str(error).split("\n")[0] or type(error).__name__
            if "weights_only" in reason:  # PyTorch's advice to run whatever code the file holds
                reason = "it holds other things, or is a file of another kind"
            raise ValueError(f"{path} is damaged, or no checkpoint of plain tensors ({reason})") from error
    if not isinstance(checkpoint, dict) or not isinstance(checkpoint.get("enfa"), dict):
        raise ValueError(f"{path} is no checkpoint of enfa train")
    there = checkpoint["enfa"].get("format", 1)
    if there != FORMAT:
        raise ValueError(
            f"{path} is a checkpoint of format {there!r}, and this version reads {FORMAT}, in which weights have other names: "
            f"train anew, or use the version that has written it ({checkpoint['enfa'].get('version')!r})"
        )
    parts = {**checkpoint["enfa"], "state_dict": checkpoint.get("state_dict")}
    wrong = [name for name, kind in _PARTS.items() if not isinstance(parts.get(name), kind)]
    if not wrong and not all(isinstance(row, dict) and row.keys() >= {"epoch", "score"} for row in parts["curve"]):
        wrong = ["curve"]
    if wrong:
        raise ValueError(
            f"{path} is {_version_of(checkpoint)}: Expected it to hold {', '.join(wrong)}, got none, or something else"
        )
    with _naming(path, checkpoint):
        config = Config.make(checkpoint["enfa"]["config"])
        Problem(**checkpoint["enfa"]["problem"])
    tell_changed_code(path, checkpoint["enfa"].get("code"), config)
    return checkpoint


def _version_of(checkpoint: dict[str, Any]) -> str:
    """In words: which version has written it."""
    from enfa import __version__

    there = checkpoint["enfa"].get("version")
    if there == __version__:
        return "a damaged checkpoint"
    return f"a checkpoint of another version ({there!r} there, {__version__!r} here)"


@contextmanager
def _naming(path: str | Path, checkpoint: dict[str, Any]) -> Iterator[None]:
    """What a checkpoint says of itself may make no sense here."""
    try:
        yield
    except Unnamed as error:
        raise Unnamed(f"{path}: {error}") from error
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} is {_version_of(checkpoint)}: {error}") from error


def _config(checkpoint: dict[str, Any]) -> Config:
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
                else _version_of(checkpoint)
            )
            raise ValueError(f"{path} is {what}: Expected {expected}, got {got}")


def check_resumable(path: str | Path, checkpoint: dict[str, Any], config: Config) -> None:
    """Refuse to continue from weights alone, with other settings or other data, or to an end that has been passed."""
    check_same_run(path, checkpoint, config)
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
    differ = _differences(_config(checkpoint), config, MODEL)
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
        replace(of, split="random") if is_table(of.dataset) and of.split is None else of for of in (_config(checkpoint), config)
    )
    differ = _differences(there, here, _of_split(here, official))
    if differ:
        raise ValueError(
            f"{path} was trained on another part of the data ({differ}): Expected the split that it was trained with, got one "
            f"in which graphs to test on may be among those it has seen"
        )


def check_same_run(path: str | Path, checkpoint: dict[str, Any], config: Config) -> None:
    """Refuse to continue a run with settings that would have made another run of it."""
    fixed = [f.name for f in fields(Config) if f.name not in RUNS_ON]
    if config.schedule == "cosine":  # the learning rate of every epoch depends on how many there are
        fixed.append("epochs")
    differ = _differences(_config(checkpoint), config, fixed)
    if differ:
        raise ValueError(f"{path} cannot be resumed with other settings: {differ}")


def load_model(path: str | Path) -> tuple[nn.Module, Config, Problem]:
    """The trained model of a checkpoint, of a run's folder (its best one), or of a folder that ``save_pretrained`` has written,
    in evaluation mode, with its settings."""
    path = one_model(path)
    if path.is_dir():
        return _model_of_folder(path)
    checkpoint = load_checkpoint(path)
    config, problem = _config(checkpoint), Problem(**checkpoint["enfa"]["problem"])
    with _naming(path, checkpoint):
        model = make_model(config, problem)
    check_weights(path, checkpoint, nn.ModuleDict({"model": model}))
    model.load_state_dict({k.removeprefix("model."): v for k, v in checkpoint["state_dict"].items()})
    told: Any = model
    told.policy = make_policy(config)
    told.task = {"problem": problem.to_dict(), "settings": config.to_dict(), "trained_on": trained_on(path)}
    return model.eval(), config, problem


def _model_of_folder(folder: Path) -> tuple[nn.Module, Config, Problem]:
    model: Any = load_pretrained(folder)
    if model.task is None:
        raise ValueError(
            f"{folder}: Expected a model that enfa train has trained, got one that was saved without a task: what its "
            f"outputs are is not known here"
        )
    try:
        return model, Config.make(model.task["settings"]), Problem(**model.task["problem"])
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{folder / CONFIG} has a damaged task, or one of another version: {error}") from error


def load(path: str | Path) -> nn.Module:
    """A model from a folder that ``model.save_pretrained`` has written, or from a checkpoint of ``enfa train``, or its folder.

    It is in evaluation mode. ``model.policy`` is the policy that it is for, and ``model.task`` what ``enfa train`` knows of its
    outputs; None, where they were not saved with it.
    """
    path = one_model(path)
    return load_pretrained(path) if path.is_dir() else load_model(path)[0]


def trained_on(path: str | Path) -> str:
    """One line: the dataset, fold, policy and model of a checkpoint, its epoch and what it scored there.

    Epochs count from 0, as in ``metrics.csv``.
    """
    path = one_model(path)
    if path.is_dir():
        model: Any = load_model(path)[0]
        return str(model.task.get("trained_on", "trained by enfa train"))
    checkpoint = load_checkpoint(path)
    config, curve = _config(checkpoint), checkpoint["enfa"]["curve"]
    parameters = ", ".join(f"{name}={value}" for name, value in config.policy_params.items())
    policy = f"{config.policy}({parameters})" if parameters else config.policy
    line = f"trained on {config.dataset} (fold {config.fold}, seed {config.seed}) with {policy}, {config.model}"
    line += "" if config.conv is None else f", {config.conv}"
    if not curve:
        return f"{line}; saved before its first epoch ended"
    problem, score = Problem(**checkpoint["enfa"]["problem"]), curve[-1]["score"]
    units = in_units(problem.metric, problem.std, problem.targets)(score)
    return f"{line}; epoch {curve[-1]['epoch']}, validation {problem.metric} {score:.4f}{units}"
