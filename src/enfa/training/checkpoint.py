"""Reading checkpoints, of plain tensors and values only, and the models in them."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn

from enfa.graphs.names import Unnamed
from enfa.nn.models.pretrained import CONFIG, load_pretrained
from enfa.training.build import make_model, make_policy
from enfa.training.metrics import in_units
from enfa.training.problem import Problem
from enfa.training.settings.code import tell_changed_code
from enfa.training.settings.config import Config
from enfa.training.settings.words import in_words
from enfa.training.start.fits import check_weights, config_of, version_of
from enfa.training.trained.members import one_model

__all__ = ["FORMAT", "load", "load_checkpoint", "load_model", "trained_on"]

# what enfa train writes beside Lightning's own: checked here, because a file with another layout would fail anywhere
FORMAT = 2  # 2: models on the verbs of a bag, whose weights have other names, and dropout without buffers
_PARTS: dict[str, type | tuple[type, ...]] = {
    "version": str, "config": dict, "problem": dict, "curve": list, "seconds": (int, float), "state_dict": dict,
}  # fmt: skip


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
        weights = isinstance(checkpoint, dict) and checkpoint and all(isinstance(t, torch.Tensor) for t in checkpoint.values())
        alone = ", but weights alone: make the model, and model.load_state_dict(torch.load(...))" if weights else ""
        raise ValueError(f"{path} is no checkpoint of enfa train{alone}")
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
            f"{path} is {version_of(checkpoint)}: Expected it to hold {', '.join(wrong)}, got none, or something else"
        )
    with _naming(path, checkpoint):
        config = config_of(checkpoint)
        Problem(**checkpoint["enfa"]["problem"])
    tell_changed_code(path, checkpoint["enfa"].get("code"), config)
    return checkpoint


@contextmanager
def _naming(path: str | Path, checkpoint: dict[str, Any]) -> Iterator[None]:
    """What a checkpoint says of itself may make no sense here."""
    try:
        yield
    except Unnamed as error:
        raise Unnamed(f"{path}: {error}") from error
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path} is {version_of(checkpoint)}: {error}") from error


def load_model(path: str | Path) -> tuple[nn.Module, Config, Problem]:
    """The trained model of a checkpoint, of a run's folder (its best one), or of a folder that ``save_pretrained`` has written,
    in evaluation mode, with its settings."""
    path = one_model(path)
    if path.is_dir():
        return _model_of_folder(path)
    checkpoint = load_checkpoint(path)
    config, problem = config_of(checkpoint), Problem(**checkpoint["enfa"]["problem"])
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
    outputs; None, where they were not saved with it. The outputs of what ``enfa train`` has trained are logits, of classes and
    of yes/no tasks, and numbers less their mean, in deviations, where it has standardised them. In probabilities and in the
    units of the data::

        model = enfa.load("runs/mine/fold-0-seed-0")
        enfa.training.predictions(model, model(enfa.make_plan(graphs, model.policy, model)))
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
    config, curve = config_of(checkpoint), checkpoint["enfa"]["curve"]
    line = f"trained on {in_words(config)}"
    if not curve:
        return f"{line}; saved before its first epoch ended"
    problem, score = Problem(**checkpoint["enfa"]["problem"]), curve[-1]["score"]
    units = in_units(problem.metric, problem.std, problem.targets)(score)
    return f"{line}; epoch {curve[-1]['epoch']}, validation {problem.metric} {score:.4f}{units}"
