"""Compiled datasets, and the batches cut out of them."""

from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.loader import DataLoader
from enfa.batch.shards.dataset import ShardedDataset
from enfa.batch.static.packed import PackedLoader

__all__ = ["CompiledDataset", "CorruptFileError", "DataLoader", "PackedLoader", "ShardedDataset"]
