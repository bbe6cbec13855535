"""What :func:`enfa.power` answers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["Power"]

ALL = "all"


@dataclass(frozen=True, eq=False)
class Power:
    """Which graphs a model class tells apart, for each number of layers.

    ``classes[i, g]``: graphs with equal numbers are the same to every model of ``layers[i]`` layers. Of pairs, the numbers of
    graphs 2p and 2p + 1 are to be compared, otherwise those of all graphs.
    """

    policy: str
    model: str
    layers: tuple[int, ...]
    classes: np.ndarray  # int64 [numbers of layers, graphs]
    pairs: bool = True
    category: tuple[str, ...] | None = None  # of each pair, or graph

    def __post_init__(self) -> None:
        count = self.classes.shape[1] // 2 if self.pairs else self.classes.shape[1]
        if self.category is not None and len(self.category) != count:
            what = "pairs" if self.pairs else "graphs"
            raise ValueError(f"Expected a category for each of {count} {what}, got {len(self.category)}")

    @property
    def apart(self) -> np.ndarray:
        """bool [numbers of layers, pairs]: which pairs are told apart."""
        if not self.pairs:
            raise ValueError("Expected pairs of graphs; of a list, ask for classes")
        return self.classes[:, 0::2] != self.classes[:, 1::2]

    @property
    def first(self) -> list[int | None]:
        """Of each pair the least number of layers that tells it apart; None where none does."""
        return [self.layers[int(np.argmax(found))] if found.any() else None for found in self.apart.T]

    @property
    def sizes(self) -> dict[str, int]:
        """How many pairs, or graphs, each category has, and all have; categories in the order in which they are met."""
        count = self.classes.shape[1] // (2 if self.pairs else 1)
        names = dict.fromkeys(self.category or ())
        return {**{name: (self.category or ()).count(name) for name in names}, ALL: count}

    def counts(self) -> dict[str, list[int]]:
        """By category, for each number of layers: pairs told apart, or classes of graphs."""
        found = {}
        for name in self.sizes:
            there = np.array([name in (ALL, other) for other in self.category or [ALL] * self.sizes[ALL]], bool)
            found[name] = [
                int(row[there].sum()) if self.pairs else len(np.unique(row[there]))
                for row in (self.apart if self.pairs else self.classes)
            ]
        return found

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON."""
        found: dict[str, Any] = {
            "policy": self.policy, "model": self.model, "layers": list(self.layers), "of": "pairs" if self.pairs else "graphs",
            "sizes": self.sizes, "counts": self.counts(),
        }  # fmt: skip
        if self.category is not None:
            found["category"] = list(self.category)
        found |= {"first": self.first} if self.pairs else {"classes": self.classes.tolist()}
        return found

    def __str__(self) -> str:
        what, sizes = "pairs told apart" if self.pairs else "classes of graphs", self.sizes
        rows = [("layers", *self.layers, "of"), *((name, *row, sizes[name]) for name, row in self.counts().items())]
        lines = [f"{name:20}" + "".join(f"{value:>6}" for value in row) for name, *row in rows]
        return "\n".join([f"{what} by {self.model} under {self.policy}", *lines])
