"""Fine-tuning: a run that starts from the weights of a trained model, on the same targets or on others."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from torch import nn

from enfa.nn.models.pretrained import check_tensors
from enfa.training.checkpoint import load
from enfa.training.problem import Problem

__all__ = ["fitted", "start_from"]

# arguments of models that say nothing of the weights
_FREE = ("out_channels", "dropout", "share", "independent_dropout")


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _covers(known: Any, seen: Any) -> bool:
    """Whether a model that was made for some columns of categories can read these."""
    known, seen = _listed(known), _listed(seen)
    lists = isinstance(known, list) and isinstance(seen, list)
    return lists and len(known) == len(seen) and all(k >= s for k, s in zip(known, seen))


def _arguments_of(model: nn.Module) -> dict[str, Any]:
    """What a model was made with."""
    found: Any = getattr(model, "arguments", None)
    if not isinstance(found, dict):
        raise ValueError(
            f"Expected one of the package's models for init, or a subclass of one, which note their arguments, got "
            f"{type(model).__name__}"
        )
    return found


def fitted(problem: Problem, model: nn.Module) -> Problem:
    """The problem for a model that knows of at least the categories of this data: how many there are is its word."""
    given = _arguments_of(model)
    change: dict[str, Any] = {name: given.get(name) for name in ("in_channels", "edge_channels")}
    return replace(problem, **{name: known for name, known in change.items() if _covers(known, getattr(problem, name))})


def start_from(path: str | Path, model: nn.Module, say: Callable[[str], None] = print) -> None:
    """Give a model the weights of another, which must be the same but for its head."""
    source, target = cast(Any, load(path)), cast(Any, model)
    if type(source) is not type(target):
        raise ValueError(f"init={path}: Expected the model {type(target).__name__}, got {type(source).__name__}")
    there, here = ({n: _listed(v) for n, v in _arguments_of(one).items()} for one in (source, target))
    differ = [f"{n} is {there[n]!r} there and {here[n]!r} here" for n in here if n not in _FREE and there[n] != here[n]]
    if differ:
        raise ValueError(f"init={path}: Expected the same model but for its head, got another: {', '.join(differ)}")
    state, own = source.state_dict(), target.state_dict()
    if there["out_channels"] != here["out_channels"]:
        head = {name for name in own if name.startswith("head.")}
        state = {**state, **{name: own[name] for name in head}}
        say(f"init={path}: its head has {there['out_channels']} outputs, {here['out_channels']} are needed: a new head")
    check_tensors(f"init={path}", state, own)
    target.load_state_dict(state)
