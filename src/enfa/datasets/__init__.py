"""Benchmarks with their official splits and metrics, and the way in for your own data.

``load`` by name, ``load_brec`` for pairs to tell apart; ``from_csv``, ``from_npz``, ``from_smiles`` and ``from_graphs`` for
what has none; ``to_npz`` writes what ``from_npz`` reads.
"""

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.catalogue import load, names
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS, from_smiles
from enfa.datasets.npz.pairs import Pairs, load_brec
from enfa.datasets.own import BadRows, from_csv, from_graphs, from_npz, to_npz

__all__ = [
    "ATOM_CHANNELS",
    "BOND_CHANNELS",
    "BadRows",
    "Benchmark",
    "Pairs",
    "from_csv",
    "from_graphs",
    "from_npz",
    "from_smiles",
    "load",
    "load_brec",
    "names",
    "to_npz",
]
