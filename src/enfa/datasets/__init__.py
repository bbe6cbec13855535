"""Benchmarks with their official splits and metrics, and the way in for your own data.

``load`` by name, ``load_brec`` for pairs to tell apart; ``from_csv``, ``from_npz``, ``from_smiles`` and ``from_graphs`` for
what has none; ``to_npz`` writes what ``from_npz`` reads; ``stream`` for what is too large to be held.
"""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa.datasets.benchmark import Benchmark
    from enfa.datasets.catalogue import load
    from enfa.datasets.known import names
    from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS, from_smiles
    from enfa.datasets.npz.pairs import Pairs, load_brec
    from enfa.datasets.own import BadRows, from_csv, from_graphs, from_npz, to_npz
    from enfa.datasets.streams import NpzStream, SmilesStream, stream
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.datasets.benchmark": "Benchmark",
        "enfa.datasets.catalogue": "load",
        "enfa.datasets.known": "names",
        "enfa.datasets.molecules": "ATOM_CHANNELS BOND_CHANNELS from_smiles",
        "enfa.datasets.npz.pairs": "Pairs load_brec",
        "enfa.datasets.own": "BadRows from_csv from_graphs from_npz to_npz",
        "enfa.datasets.streams": "NpzStream SmilesStream stream",
    })  # fmt: skip

__all__ = [
    "ATOM_CHANNELS",
    "BOND_CHANNELS",
    "BadRows",
    "Benchmark",
    "NpzStream",
    "Pairs",
    "SmilesStream",
    "from_csv",
    "from_graphs",
    "from_npz",
    "from_smiles",
    "load",
    "load_brec",
    "names",
    "stream",
    "to_npz",
]
