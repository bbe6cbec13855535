"""Models as folders: weights in safetensors, everything else in JSON. Nothing is pickled, and nothing in them is executed.

``config.json`` says what the model is and names the file of its weights, which is called by what it holds. So a folder that is
written again has the old model until ``config.json`` is replaced, and then the whole new one.
"""

import hashlib
import inspect
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as tensors_of
from safetensors.torch import save as bytes_of
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from enfa.atomic import write_atomically
from enfa.edits import Policy, policy_from
from enfa.edits.policies import POLICIES
from enfa.graphs.names import check_named, unknown
from enfa.nn.models.arguments import arguments, without_defaults
from enfa.own_code import code_of, tell_changed

__all__ = ["CONFIG", "Saved", "check_tensors", "load_pretrained"]

CONFIG, FORMAT = "config.json", 1
_PARTS: dict[str, tuple[type, ...]] = {
    "enfa": (str,), "model": (str,), "arguments": (dict,), "policy": (dict, type(None)), "task": (dict, type(None)),
    "weights": (str,),
}  # fmt: skip
_PLAIN = str | int | float
_OF_TRAINING = {"training", "momentum", "inplace"}
_WEIGHTS = re.compile(r"weights-[0-9a-f]{16}\.safetensors")


class Saved:
    """What a model needs to be saved: the arguments that it was made with, its policy, and what its outputs are."""

    policy: Policy | None = None
    """The policy that it was trained with, of a model from :func:`enfa.load` that has one."""
    task: dict[str, Any] | None = None
    """What ``enfa train`` knows of the outputs, of a model that it has trained: plain values."""
    _given: tuple[tuple[Any, ...], dict[str, Any]]

    def __new__(cls, *args: Any, **options: Any) -> Any:
        if cls.__init__.__module__.startswith("enfa."):  # constructors of others may take names that they do not list
            takes = arguments(cls)
            for name in options.keys() - takes.keys():
                raise TypeError(str(unknown(f"an argument of {cls.__name__}", name, takes)))
        new = super().__new__(cls)
        new.__dict__["_given"] = (args, options)  # before nn.Module is there to keep it
        return new

    @property
    def arguments(self) -> dict[str, Any]:
        """All of its constructor's, by name: those that were given, and defaults, which another version may have others of."""
        args, options = self._given
        signature, takes = inspect.signature(type(self).__init__), arguments(type(self))
        given: dict[str, Any] = {}
        for name, value in signature.bind(self, *args, **options).arguments.items():
            kind = signature.parameters[name].kind
            if kind is inspect.Parameter.VAR_POSITIONAL:  # handed on to its parents' constructor, as what is named is
                of_parents = [n for n in takes if n not in signature.parameters]
                given |= zip(of_parents, value)
            else:
                given |= value if kind is inspect.Parameter.VAR_KEYWORD else {name: value}
        found = {name: given.get(name, param.default) for name, param in takes.items()}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}  # as JSON has them

    def save_pretrained(self, folder: str | Path, policy: Policy | None = None) -> None:
        """Write a folder that :func:`enfa.load` reads: ``config.json``, and the weights in safetensors.

        ``policy``: what makes the subgraphs that the model is for; by default the one that it was loaded with.
        """
        from enfa import __version__

        assert isinstance(self, nn.Module)
        policy = self.policy if policy is None else policy
        said = {
            "format": FORMAT, "enfa": __version__, "model": _name_of(self),
            "arguments": {name: _plain(f"the argument {name}", value) for name, value in self.arguments.items()},
            "policy": None if policy is None else described(policy), "task": _plain("the task", self.task),
        }  # fmt: skip
        state = {name: value.detach().cpu().contiguous().clone() for name, value in self.state_dict().items()}
        said["code"] = _code_of(said)
        made, changed = _made(said), "the model, which was changed after it was made"
        check_tensors(changed, state, made.state_dict())
        _check_parts(changed, self, made)
        data = bytes_of(state)
        said["weights"] = f"weights-{hashlib.sha256(data).hexdigest()[:16]}.safetensors"
        folder = Path(folder)
        if folder.is_file():
            raise ValueError(f"Expected a folder to save a model in, got the file {folder}")
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / str(said["weights"]), [data])
        write_atomically(folder / CONFIG, [(json.dumps(said, indent=1) + "\n").encode()])
        for old in folder.iterdir():
            if _WEIGHTS.fullmatch(old.name) and old.name != said["weights"]:
                old.unlink(missing_ok=True)


def _check_parts(where: str, model: nn.Module, made: nn.Module) -> None:
    """What has no weights: activations, rates, settings. What only training reads of a norm may have changed."""
    got, expected = dict(model.named_modules()), dict(made.named_modules())
    for name in {**expected, **got}:
        one, other, at = got.get(name), expected.get(name), name or "the model"
        norms = isinstance(one, _BatchNorm) and isinstance(other, _BatchNorm)  # SyncBatchNorm, of several processes
        if type(one) is not type(other) and not norms:
            kinds = [type(part).__name__ if part is not None else "none" for part in (other, one)]
            raise ValueError(f"{where}: Expected {kinds[0]} as {at}, got {kinds[1]}")
        new, old = vars(one), vars(other)
        for key in (new.keys() & old.keys()) - _OF_TRAINING:
            if not key.startswith("_") and isinstance(old[key], _PLAIN | None) and new[key] != old[key]:
                raise ValueError(f"{where}: Expected {key}={old[key]!r} in {at}, got {new[key]!r}")


def described(policy: Policy) -> dict[str, Any]:
    """As configs write it: its name, and its parameters beside it."""
    said = _plain("the policy", {"name": policy.name(), **policy.params})
    if POLICIES.get(policy.name()) is not type(policy) or policy_from(**said) != policy:
        raise ValueError(f"Expected a policy that enfa ships, to be saved by its name, got {policy!r}")
    return said


def _name_of(model: nn.Module) -> str:
    from enfa.nn.models.registry import MODELS  # which has all that are saved

    for name, cls in MODELS.items():
        if type(model) is cls:
            return name
    raise ValueError(
        f"Expected one of the models that enfa ships, to be saved by its name, got {type(model).__name__}: "
        f"keep its weights with torch.save(model.state_dict(), path)"
    )


def _plain(what: str, value: Any) -> Any:
    """As JSON has it; refused where it has no way to say it."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(key): _plain(f"{what}, {key}", one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(what, one) for one in value]
    if hasattr(value, "tolist"):  # of numpy, or a tensor
        return _plain(what, value.tolist())
    raise ValueError(f"Expected {what} to be plain values, to be saved in JSON, got {value!r}")


def check_tensors(where: object, there: Mapping[str, Tensor], here: Mapping[str, Tensor]) -> None:
    """Refuse weights that lack one of the model's, have one of another shape, or one more."""
    for name in sorted(there.keys() | here.keys()):
        expected, got = (f"of shape {list(of[name].shape)}" if name in of else "none" for of in (here, there))
        if expected != got:
            raise ValueError(f"{where}: Expected '{name}' {expected}, got {got}")


def _made(said: Mapping[str, Any]) -> nn.Module:
    """The model that a folder describes, without its weights. Nothing is drawn from the generator of the caller."""
    from enfa.nn.models.registry import MODELS

    check_named("the model", said["model"], MODELS)
    cls = MODELS[said["model"]]
    with torch.random.fork_rng(devices=[]):
        return cls(**without_defaults(cls, said["arguments"]))


def _code_of(said: Mapping[str, Any]) -> dict[str, str]:
    """Fingerprints of the user's own files that it is made of."""
    return code_of([said["model"], *said["arguments"].values()])


def load_pretrained(folder: str | Path) -> nn.Module:
    """The model of a folder that ``save_pretrained`` has written, in evaluation mode, with its ``policy`` and ``task``."""
    folder = Path(folder)
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"There is no model in {folder}: Expected a file {CONFIG}, got none")
    try:
        said = json.loads(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged, or no JSON ({error})") from error
    if not isinstance(said, dict) or "format" not in said:
        raise ValueError(f"{path} describes no model: Expected an object with 'format', as save_pretrained writes it")
    if said["format"] != FORMAT:
        raise ValueError(
            f"{path} is of format {said['format']!r}, and this version reads {FORMAT}: use the version that has written it "
            f"({said.get('enfa')!r})"
        )
    for name, kinds in _PARTS.items():
        if name not in said or not isinstance(said[name], kinds):
            raise ValueError(f"{path}: Expected '{name}' of the model, got {said.get(name, 'none')!r}")
    try:
        model: Any = _made(said)
        policy = None if said["policy"] is None else policy_from(**said["policy"])
    except (ValueError, TypeError, RuntimeError) as error:
        raise ValueError(f"{path}: {error}") from error
    weights = folder / said["weights"]
    if not _WEIGHTS.fullmatch(said["weights"]) or not weights.is_file():
        raise ValueError(f"{path}: Expected a file of weights beside it, got {said['weights']!r}, which is none")
    try:
        state = tensors_of(weights.read_bytes())
    except SafetensorError as error:
        raise ValueError(f"{weights} is damaged, or no safetensors file ({error})") from error
    check_tensors(weights, state, model.state_dict())
    precisions = {value.dtype for value in state.values() if value.is_floating_point()}
    if len(precisions) != 1:
        raise ValueError(f"{weights}: Expected weights of one precision, got {sorted(map(str, precisions))}")
    model = model.to(precisions.pop())
    model.load_state_dict(state)
    model.policy, model.task = policy, said["task"]
    tell_changed(path, said.get("code"), _code_of(said))
    return model.eval()
