"""Small stand-ins for packages that peers import and that need not be installed: they do what the peer uses of them."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any

from torch import nn
from torch_geometric.utils import scatter

__all__ = ["SIZE", "stand_in"]


class _Encoder(nn.Module):
    """An embedding for each column, added up, as OGB's encoders of atoms and bonds."""

    dims: tuple[int, ...] = ()

    def __init__(self, emb_dim: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(count, emb_dim) for count in self.dims)
        for table in self.tables:
            nn.init.xavier_uniform_(table.weight.data)  # type: ignore[union-attr, arg-type]

    def forward(self, x: Any) -> Any:
        return sum(self.tables[i](x[:, i]) for i in range(x.shape[1]))


class _Atoms(_Encoder):
    dims = (119, 5, 12, 12, 10, 6, 6, 2, 2)


class _Bonds(_Encoder):
    dims = (5, 6, 2)


def stand_in(**modules: dict[str, Any]) -> list[str]:
    """Modules (dots written as two underscores) with these names in them, where they are missing; which those were."""
    found = []
    for name, names in modules.items():
        name = name.replace("__", ".")
        if name in sys.modules or importlib.util.find_spec(name.split(".")[0]) is not None:
            continue
        found.append(name)
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            inside = ".".join(parts[:i])
            sys.modules.setdefault(inside, ModuleType(inside))
            if i > 1:
                setattr(sys.modules[".".join(parts[: i - 1])], parts[i - 1], sys.modules[inside])
        vars(sys.modules[name]).update(names)
    return found


# how many sums there are, where a peer does not say: to count them, a GPU would have to be waited for
SIZE: dict[str, int | None] = {"known": None}


def _scatter(src: Any, index: Any, dim: int = 0, dim_size: int | None = None, reduce: str = "sum") -> Any:
    return scatter(src, index, dim, SIZE["known"] if dim_size is None else dim_size, reduce)


SCATTER = {"scatter": _scatter}
OGB = {"AtomEncoder": _Atoms, "BondEncoder": _Bonds}
