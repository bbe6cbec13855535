"""Compiled datasets, and the batches cut out of them."""

from enfa.batch.compile import compile
from enfa.batch.dataset import CompiledDataset
from enfa.batch.loader import DataLoader
from enfa.batch.static.packed import PackedLoader
from enfa.batch.storage import CorruptFileError, load_compiled

__all__ = ["CompiledDataset", "CorruptFileError", "DataLoader", "PackedLoader", "compile", "load_compiled"]
