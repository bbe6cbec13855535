"""BREC (Wang and Zhang, ICML 2024): 400 pairs of graphs that message passing cannot tell apart."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from enfa.datasets.own import graphs_from_npz

__all__ = ["GraphPairs", "load_brec"]

# The authors' files keep two parts of "Regular" apart, their tables do not.
_PART_OF = {"4-Vertex_Condition": "Regular", "Distance_Regular": "Regular"}


@dataclass(frozen=True, eq=False)
class GraphPairs:
    """Pair p is graphs 2p and 2p + 1, of the category ``category[p]``."""

    name: str
    graphs: list[Data] = field(repr=False)
    category: tuple[str, ...] = field(repr=False)


def load_brec(path: str | Path) -> GraphPairs:
    """From an ``.npz`` file, laid out as :func:`~enfa.datasets.from_npz` says, with ``category`` [pairs], numbers of names in
    ``categories``, and no labels.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    graphs = graphs_from_npz(path)
    with np.load(path, allow_pickle=False) as file:
        names, number = ([] if key not in file else file[key].tolist() for key in ("categories", "category"))
    if 2 * len(number) != len(graphs) or not all(0 <= n < len(names) for n in number):
        raise ValueError(f"{path}: expected a category for each pair of {len(graphs)} graphs, got {len(number)}")
    return GraphPairs(path.stem, graphs, tuple(_PART_OF.get(names[n], names[n]) for n in number))
