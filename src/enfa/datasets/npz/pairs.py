"""BREC: pairs of graphs that 1-WL cannot tell apart (Wang and Zhang, 2023)."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from enfa.datasets.known import elsewhere
from enfa.datasets.npz.read import directions, flat_graphs, read_npz

__all__ = ["Pairs", "load_brec"]

NUM_PAIRS = 400
# The authors' files keep two parts of "Regular" apart, their tables do not.
_PART_OF = {"4-Vertex_Condition": "Regular", "Distance_Regular": "Regular"}


@dataclass(frozen=True, eq=False)
class Pairs:
    """Graphs 2p and 2p + 1 are pair p, which is of category ``categories[category[p]]``. They have no labels."""

    name: str
    graphs: list[Data] = field(repr=False)
    categories: tuple[str, ...]
    category: np.ndarray = field(repr=False)

    def __len__(self) -> int:
        return len(self.category)

    def __iter__(self) -> Iterator[tuple[Data, Data]]:
        return iter(zip(self.graphs[::2], self.graphs[1::2]))

    @property
    def tabled(self) -> tuple[str, ...]:
        """Of every pair the category that the authors' tables have it under."""
        return tuple(_PART_OF.get(self.categories[c], self.categories[c]) for c in self.category)

    def of(self, category: str) -> np.ndarray:
        """The numbers of the pairs of one category."""
        if category not in self.categories:
            raise ValueError(f"{self.name}: expected one of the categories {', '.join(self.categories)}, got {category!r}")
        return np.flatnonzero(self.category == self.categories.index(category))


def load_brec(root: str | Path = "data") -> Pairs:
    """The 400 pairs, from ``root/BREC.npz``. (Its official files are arrays of pickled objects, which are never read.)

    Nodes carry no information: ``x`` is one category.
    """
    path = Path(root) / "BREC.npz"
    if not path.is_file():
        raise FileNotFoundError(
            f"BREC needs {path}: not there; its official files hold pickled objects, which are never read. "
            f"{elsewhere('BREC', root)}"
        )
    arrays = read_npz(path, ("category", "categories"))
    flat = flat_graphs(path, arrays, directions(path, arrays))
    category, names = arrays["category"].astype(np.int64), tuple(arrays["categories"].tolist())
    if len(category) != NUM_PAIRS or len(flat.num_nodes) != 2 * NUM_PAIRS:
        raise ValueError(f"{path}: BREC has 400 pairs, got {len(category)} of {len(flat.num_nodes)} graphs; is it cut short?")
    return Pairs("BREC", flat.graphs(), names, category)
