"""Which batches the sizes of buckets are chosen by."""

import numpy as np

from enfa.batch.batches import Batches
from enfa.batch.shards.dataset import Compiled, ShardedDataset

__all__ = ["samples"]

SAMPLES = 48


def samples(compiled: Compiled, sampled: Batches) -> list[np.ndarray]:
    """The graphs of some batches: of epochs that no run gets to, and the last, smaller ones of some more."""
    if not sampled.shuffle:
        every = sampled.parts()
        return every if len(every) <= SAMPLES else [*every[:: -(-len(every) // SAMPLES)], every[-1]]
    if isinstance(compiled, ShardedDataset):
        return _of_windows(compiled, sampled)
    found: list[np.ndarray] = []
    rests: list[np.ndarray] = []
    for epoch in range(2**30, 2**30 + SAMPLES // 4):
        batches = sampled.parts(epoch)
        if len(batches[-1]) < len(batches[0]):
            rests.append(batches.pop())
        found += batches[: SAMPLES - len(found)]
    return [graphs for graphs in found + rests if len(graphs)]


def _of_windows(sharded: ShardedDataset, sampled: Batches) -> list[np.ndarray]:
    """Those of one window of a sharded dataset, and two last ones: every other one would have to be read."""
    first = sampled.batches(2**30)
    sharded.follow(sampled, 2**30, 0)
    found = [first[n] for n in sampled.cuts(2**30).batches(0)[:SAMPLES]]
    return found + [batches[-1] for batches in (first, sampled.batches(2**30 + 1))]
