"""Benchmarks with their official splits and metrics, and the way in for your own data.

``load`` by name, ``load_brec`` for pairs to tell apart; ``from_npz``, ``from_smiles`` and ``from_graphs`` for what has none;
``stream`` for what is too large to be held.
"""

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.catalogue import load, names
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS, from_smiles
from enfa.datasets.npz.pairs import Pairs, load_brec
from enfa.datasets.own import from_graphs, from_npz
from enfa.datasets.streams import NpzStream, SmilesStream, stream

__all__ = [
    "ATOM_CHANNELS",
    "BOND_CHANNELS",
    "Benchmark",
    "NpzStream",
    "Pairs",
    "SmilesStream",
    "from_graphs",
    "from_npz",
    "from_smiles",
    "load",
    "load_brec",
    "names",
    "stream",
]
