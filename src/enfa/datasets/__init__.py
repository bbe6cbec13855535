"""Benchmarks with their official splits and metrics, and the way in for your own data.

``load`` by name; ``from_npz``, ``from_smiles`` and ``from_graphs`` for what has none.
"""

from enfa.datasets.benchmark import Benchmark
from enfa.datasets.catalogue import load, names
from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS, from_smiles
from enfa.datasets.own import from_graphs, from_npz

__all__ = [
    "ATOM_CHANNELS",
    "BOND_CHANNELS",
    "Benchmark",
    "from_graphs",
    "from_npz",
    "from_smiles",
    "load",
    "names",
]
