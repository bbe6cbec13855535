"""Datasets that are read a piece at a time: for :func:`enfa.compile` with ``out``."""

from enfa.datasets.streams.by_name import stream
from enfa.datasets.streams.flat import FlatStream
from enfa.datasets.streams.npz import NpzStream
from enfa.datasets.streams.smiles import SmilesStream

__all__ = ["FlatStream", "NpzStream", "SmilesStream", "stream"]
