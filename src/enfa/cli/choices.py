"""Reading what users type: datasets, policies, numbers of layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml
from rich.console import Console

from enfa.datasets import Benchmark, from_npz, load
from enfa.datasets.known import check_known, is_table, no_records
from enfa.edits import POLICIES, Policy, policy_from
from enfa.edits.made_for import own_policy
from enfa.graphs.names import check_named
from enfa.nn.models.registry import MODELS
from enfa.report.extra import need_matplotlib

__all__ = [
    "OfModel", "PolicyName", "Root", "check_picture", "dataset_of", "default_policy", "layers_of", "policy_of", "words",
]  # fmt: skip

PICTURES = (".png", ".pdf", ".svg")
_NAMES = f"One of {', '.join(POLICIES)}; parameters as in ego_nets:hops=2."

# options that several commands have
PolicyName = Annotated[str, typer.Option(help=_NAMES)]
OfModel = Annotated[str | None, typer.Option(help=_NAMES, show_default="the model's, for most node_marking")]
Root = Annotated[Path, typer.Option(envvar="ENFA_DATA", help="Folder of raw data, which may be downloaded, or of NAME.npz.")]


def dataset_of(name: str, root: Path, also: Sequence[str] = ()) -> Benchmark:
    """A dataset by its official name, from ``root/NAME.npz`` or raw files below ``root``; or an .npz file, by its path.
    ``also``: names that the command reads by itself, which may have been meant."""
    if name.endswith(".npz"):
        if not Path(name).is_file():
            raise FileNotFoundError(f"{name}: no such file")
        return from_npz(name)
    if is_table(name):
        raise ValueError(
            f"Expected a dataset's name or an .npz file, got the table {name}: enfa convert makes an .npz file of it"
        )
    no_records(name)
    if also:
        check_known(name, root, also)
    return load(name, root)


def policy_of(text: str) -> Policy:
    """A policy's name, and its parameters if need be; or a mapping, as in YAML files.

    >>> policy_of("node-marking"), policy_of("ego_nets:hops=2:mark=true")
    (NodeMarking(distances=None), EgoNets(hops=2, mark=True, isolate=False))
    >>> policy_of("subsample:count=3:policy={name: ego_nets, hops: 2}").policy
    EgoNets(hops=2, mark=False, isolate=False)
    >>> policy_of("{name: reconstruction, k: -1}").k
    -1
    """
    if text.lstrip().startswith("{"):
        given = _yaml(text, text)
        if not isinstance(given, dict) or not isinstance(given.get("name"), str):
            raise ValueError(f"Expected a policy such as {{name: ego_nets, hops: 2}}, got {text!r}")
        return policy_from(**given)
    name, *params = re.split(r":(?![^{]*\})", text.strip())  # not within braces
    pairs = [param.partition("=") for param in params]
    if any(not equals for _, equals, _ in pairs):
        raise ValueError(f"Expected a policy such as node_marking or ego_nets:hops=2, got {text!r}")
    values = {key: _yaml(value, text) for key, _, value in pairs}
    return policy_from(name.replace("-", "_"), **values)


def default_policy(model: str, console: Console) -> str:
    """The policy of a model where none was named; says which."""
    check_named("the model", model, MODELS)
    found = own_policy(model)
    console.print(f"No --policy was given: {found}, which is the default for {model}.", markup=False, soft_wrap=True)
    return found


def _yaml(value: str, text: str) -> Any:
    try:
        return yaml.safe_load(value)
    except yaml.YAMLError as error:
        raise ValueError(f"Expected YAML in the policy {text!r}, got {value!r}") from error


def check_picture(path: Path | None) -> None:
    """Before any work: whether a picture can be written there."""
    if path is None:
        return
    if path.suffix not in PICTURES:
        raise ValueError(f"Expected a file ending in {', '.join(PICTURES)} for --plot, got {path}")
    need_matplotlib()


def words(text: str) -> list[str]:
    """Names with commas between them, each once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def layers_of(text: str) -> list[int]:
    """Numbers of layers.

    >>> layers_of("2-4,7")
    [2, 3, 4, 7]
    """
    found: set[int] = set()
    for word in words(text):
        low, dash, high = word.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"Expected numbers of layers such as 4 or 2-5, got {text!r}")
        found |= set(range(int(low), int(high if dash else low) + 1))
    if not found or min(found) < 1:
        raise ValueError(f"Expected at least one number of layers, each >= 1, got {text!r}")
    return sorted(found)
