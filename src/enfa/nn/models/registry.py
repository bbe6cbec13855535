"""Models by the names that configs and commands give them. Names and defaults are plain data: they need no PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import nn

__all__ = ["DEFAULTS", "MODELS"]

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


class _Models(MutableMapping[str, "type[nn.Module]"]):
    """Each is imported when it is asked for. One's own can be added."""

    def __init__(self) -> None:
        self._own: dict[str, type[nn.Module]] = {}

    def __getitem__(self, name: str) -> type[nn.Module]:
        if name in self._own:
            return self._own[name]
        module, _, cls = _CLASSES[name].rpartition(".")
        return getattr(import_module(f"enfa.nn.models.{module}"), cls)

    def __setitem__(self, name: str, cls: type[nn.Module]) -> None:
        self._own[name] = cls

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**_CLASSES, **self._own})

    def __len__(self) -> int:
        return len({**_CLASSES, **self._own})

    def __contains__(self, name: object) -> bool:  # asked without importing it
        return name in _CLASSES or name in self._own


MODELS = _Models()
