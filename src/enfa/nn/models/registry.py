"""Models by the names that configs and commands give them. Names and defaults are plain data: they need no PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from enfa.own_code import found, own

if TYPE_CHECKING:
    from torch import nn

__all__ = ["DEFAULTS", "MODELS", "SHIPPED"]

# Arguments that several models have are called what SubgraphGNN calls them; others are a config's model_params.
_CLASSES = {
    "ds": "ds.DSGNN",
    "dss": "dss.DSSGNN",
    "esan": "esan.ESAN",
    "sun": "sun.SUN",
    "sswl": "sswl.SSWLGNN",
    "subgraphormer": "subgraphormer.Subgraphormer",
    "ngnn": "ego_nets.ngnn.NGNN",
    "id_gnn": "ego_nets.id_gnn.IDGNN",
    "gnn_ak": "ego_nets.gnn_ak.GNNAK",
    "i2gnn": "ego_nets.i2gnn.I2GNN",
}

SHIPPED = tuple(_CLASSES)

_USUAL = {"conv": "gin", "readout": "sum", "bag": "mean", "jk": "last", "residual": False}
_ROOTED = {**_USUAL, "readout": "mean"}
DEFAULTS: dict[str, dict[str, Any]] = {
    "ds": _USUAL,
    "dss": _USUAL,
    "esan": _USUAL,
    "sun": _ROOTED,
    "sswl": _USUAL,
    "subgraphormer": {**_USUAL, "conv": "gat"},
    "ngnn": _ROOTED,
    "id_gnn": _ROOTED,
    "gnn_ak": {"conv": "gin", "readout": "mean", "bag": None, "jk": None, "residual": True},
    "i2gnn": _ROOTED,
}
"""What the constructors have for the arguments that a config may leave to them; None where they do not take one. A config is
checked before PyTorch is imported, so they are written down here, too; a test compares both."""


def _is_model(value: Any) -> bool:
    from torch import nn

    from enfa.nn.convs import is_conv

    if isinstance(value, type):
        return issubclass(value, nn.Module) and not is_conv(value)
    return callable(value)  # a function that makes one: by enfa.lift, say


class _Models(Mapping[str, "Callable[..., nn.Module]"]):
    """Each is imported when it is asked for. Those of the user's own files (:mod:`enfa.own_code`) are called as there."""

    def __getitem__(self, name: str) -> Callable[..., nn.Module]:
        mine = found("the model", name, _CLASSES, _is_model)
        if mine is not None:
            return mine
        module, _, cls = _CLASSES[name].rpartition(".")
        return getattr(import_module(f"enfa.nn.models.{module}"), cls)

    def __iter__(self) -> Iterator[str]:
        return iter({**_CLASSES, **own(_is_model)})

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __contains__(self, name: object) -> bool:  # asked without importing it
        return name in _CLASSES or name in own(_is_model)


MODELS = _Models()
