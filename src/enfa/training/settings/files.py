"""Config files: YAML, one inheriting from another, with settings overridden on the command line."""

import difflib
import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml

from enfa.datasets.known import dataset_file, is_table, names, no_records
from enfa.nn.models.arguments import arguments
from enfa.nn.models.registry import DEFAULTS, MODELS
from enfa.training.settings.arguments import SETTINGS, default_of
from enfa.training.settings.config import Config

__all__ = ["no_such_setting", "read_config"]

# Settings for a CSV file of molecules where nothing else is said: runs end when they get no better. Where the model's own conv
# would not read bonds, it is one that does.
MOLECULES: dict[str, Any] = {"hidden_channels": 64, "epochs": 100, "early_stopping": 20}
READS_BONDS = {"gin": "gine"}


def no_such_setting(key: str) -> ValueError:
    close = difflib.get_close_matches(str(key), [f.name for f in fields(Config)], n=1)
    hint = f"did you mean {close[0]!r}?" if close else "'enfa train --help' lists them"
    return ValueError(f"Expected a setting that exists, got {key!r} ({hint})")


def _nearby(path: Path) -> str:
    """Where a config of that name is, if it was called by its name."""
    found = [p for p in (path.with_name(f"{path.name}.yaml"), path.parent / "configs" / f"{path.name}.yaml") if p.is_file()]
    return f": did you mean {os.path.relpath(found[0])}?" if found else ""


def _read(path: Path, below: tuple[Path, ...] = ()) -> dict[str, Any]:
    """A file's settings on top of its base's."""
    path = path.resolve()
    if path in below:
        raise ValueError(f"{path} is its own base")
    if not path.is_file():
        whose = f", which {below[-1]} names as its base" if below else _of_dataset(path.name) or _nearby(path)
        raise FileNotFoundError(f"There is no config file {path}{whose}")
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not YAML: {' '.join(str(error).split())}{_of_data_files(path)}") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path}: Expected 'setting: value' lines, got {type(values).__name__}{_of_data_files(path)}")
    base = values.pop("base", None)
    if base is None:
        return values
    if not isinstance(base, str):
        raise ValueError(f"{path}: Expected base to be the path of another config file, got {base!r}")
    return {**_read(path.parent / base, (*below, path)), **values}


def _of_data_files(path: Path) -> str:
    """Where a file is not called as a config: how files of data are, which may have been meant."""
    return "" if path.suffix in (".yaml", ".yml") else " (a table of molecules ends in .csv or .tsv, a file of graphs in .npz)"


def _of_dataset(name: str) -> str:
    """Where a dataset's name stands for a config: which there are."""
    if name not in names():
        return ""
    found = [str(path) for path in sorted(Path("configs").glob(f"{name}-*.yaml"))]
    instead = f"name one of {', '.join(found)}" if found else f"write 'dataset: {name}' into a .yaml file, and name that"
    return f", and {name} is a dataset: {instead}"


def _override(text: str) -> tuple[str, Any]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ValueError(f"Expected an override such as lr=0.01, got {text!r}")
    try:
        return key.strip(), yaml.safe_load(value) if value.strip() else ""
    except yaml.YAMLError as error:
        raise ValueError(f"Expected a value for {key}, got {value!r}") from error


def _mapping(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"Expected {name} to be a mapping, got {value!r}")
    return value


# Settings for nodes and links of one graph where nothing else is said
ONE_GRAPH: dict[str, dict[str, Any]] = {
    "nodes": {"policy": "ego_nets", "policy_params": {"hops": 2, "mark": True}},
    "links": {"policy": "pair_marking", "policy_params": {"hops": 1, "mark": "distances"}},
}
SHORT: dict[str, Any] = {
    "readout": "root", "norm": "layer", "num_layers": 2, "batch_size": 256, "lr": 0.005, "epochs": 100, "early_stopping": 20,
}  # fmt: skip


def _of_data(path: Path) -> dict[str, Any]:
    return {"dataset": str(dataset_file(path))}


def _with_defaults(values: dict[str, Any]) -> dict[str, Any]:
    """Of nodes and links; a policy of one's own brings its own parameters."""
    own = ONE_GRAPH.get(str(values.get("level")))
    if own is None:
        return values
    if "policy" not in values:
        given = _mapping("policy_params", values.get("policy_params", {}))
        values = {**values, **own, "policy_params": {**own["policy_params"], **given}}
    return _fitting(values, SHORT)


def _for_molecules(values: dict[str, Any]) -> dict[str, Any]:
    model = values.get("model", "ds")
    own = default_of(model, "conv") if isinstance(model, str) and model in MODELS else None
    bonds = {"conv": READS_BONDS[own]} if own in READS_BONDS else {}
    return _fitting(values, {**MOLECULES, **bonds})


def _fitting(values: dict[str, Any], usual: dict[str, Any]) -> dict[str, Any]:
    """With what is usual where nothing else is said; of a model of the user's own, only what it takes."""
    model = values.get("model", "ds")
    if isinstance(model, str) and model not in DEFAULTS and model in MODELS:
        takes = arguments(MODELS[model])
        usual = {name: value for name, value in usual.items() if name in takes or name not in SETTINGS}
    return {**usual, **values}


def read_config(path: str | Path, overrides: Sequence[str] = (), **options: Any) -> Config:
    """The settings of a file: its ``base``'s (a path beside it), then its own, then ``key=value`` overrides.

    ``policy_params.isolate=true`` sets one entry of a mapping. A ``.csv`` or ``.npz`` file is a config with that dataset.
    ``options`` are further overrides, by name.
    """
    path = Path(path)
    no_records(path)
    values = {"name": path.stem, **(_of_data(path) if is_table(path) or path.suffix == ".npz" else _read(path))}
    try:
        for text in overrides:
            key, value = _override(text)
            outer, dot, inner = key.partition(".")
            if dot:
                Config.make({"dataset": "", outer: {}})  # the setting exists, and is a mapping
                value, key = {**_mapping(outer, values.get(outer, {})), inner: value}, outer
            values[key] = value
        values = _with_defaults(values | options)
        no_records(str(values.get("dataset")))
        if is_table(str(values.get("dataset"))):
            values = _for_molecules(values)
        elif str(values.get("dataset")).endswith(".npz"):
            # 'test' is there to be compared with published numbers, of which a file of one's own has none
            values = {"validation": "next", **values}
        return Config.make(values)
    except ValueError as error:
        if overrides or options:
            read_config(path)  # says so where the file itself is wrong
        where = f"{path} with {' '.join(overrides)}" if overrides else path
        raise ValueError(f"{where}: {error}") from error
