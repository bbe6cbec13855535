"""Training in captured steps: when it is done, and how Lightning gets its batches then."""

from collections.abc import Iterator
from itertools import islice

import torch

from enfa.batch.loader import default_workers
from enfa.batch.static.packed import Packed, PackedLoader
from enfa.nn.triton import accelerated
from enfa.training.settings.code import of_own_code
from enfa.training.settings.config import Config
from enfa.training.start.unread import tell

__all__ = ["Chunks", "on_gpu", "uses_graphs", "workers"]


def on_gpu(config: Config) -> bool:
    return config.accelerator != "cpu" and torch.cuda.is_available()


def uses_graphs(config: Config) -> bool:
    """Whether steps are padded, packed and captured: by default wherever they can be."""
    if config.graphed != "auto":
        return config.graphed
    if not on_gpu(config) or config.not_graphed() is not None or not accelerated(torch.empty(0, device="cuda")):
        return False
    if of_own_code(config):  # a graph repeats what Python decided when it was captured: the user must know that it may
        tell(f"{config.name}: steps of a model of your own run eagerly; graphed=true captures them, as enfa.Step does.")
        return False
    return True


def workers(config: Config) -> int:
    """Processes that make batches, where the config does not say: none on the CPU, which has better things to do."""
    if config.num_workers is not None:
        return config.num_workers
    if not on_gpu(config):
        return 0
    return default_workers() if config.shards is None else min(default_workers(), 2)  # each has a window of its own


class Chunks:
    """Packed batches, some dozens at a time: a step costs less than what Lightning does around every batch.

    Each chunk must be used up before the next is asked for, as Lightning does.
    """

    def __init__(self, loader: PackedLoader, size: int = 50) -> None:
        self.loader, self.size = loader, size
        self.sampler, self.batch_sampler = loader.sampled, None  # whose epoch Lightning sets

    def __len__(self) -> int:
        return -(-len(self.loader) // self.size)

    def __iter__(self) -> Iterator[Iterator[Packed]]:
        batches = iter(self.loader)
        for _ in range(len(self) - 1):
            yield islice(batches, self.size)
        yield batches  # to its very end, where the loader notes that the epoch is over
