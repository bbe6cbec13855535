"""Which graphs of a compiled dataset are meant, and whose turn it is to cut them out."""

import os
from collections.abc import Sequence
from threading import RLock

import numpy as np
from torch import Tensor

__all__ = ["SLICING", "positions", "positions_to_load"]

# Slicing keeps scratch in the dataset, so one thread slices at a time. A process is forked between two slices, never within
# one: its copy of the scratch would be half written, and the lock held by a thread that it does not have.
SLICING = RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=SLICING.acquire, after_in_parent=SLICING.release, after_in_child=SLICING.release)


def positions(graphs: int | Sequence[int] | np.ndarray | Tensor | slice, count: int) -> np.ndarray:
    """Positions of graphs, of which there are ``count``, from a number, numbers, a slice or a mask; each at most once, as in a
    batch. Numbers below 0 count from the end, as in a list.
    """
    if isinstance(graphs, slice):
        graphs = np.arange(count)[graphs]
    ids = np.atleast_1d(np.asarray(graphs))
    if ids.dtype == bool:
        if ids.shape != (count,):
            raise IndexError(f"Expected a mask of shape [{count}], got {list(ids.shape)}")
        ids = np.flatnonzero(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise IndexError(f"Expected a list of graph numbers, got {ids.dtype} of shape {list(ids.shape)}")
    ids = ids.astype(np.int64)
    if ids.size and not (ids.min() >= -count and ids.max() < count):
        raise IndexError(f"Expected graphs 0 to {count - 1}, got {ids.min()} to {ids.max()}")
    ids = np.where(ids < 0, ids + count, ids)
    ordered = np.sort(ids)
    if (ordered[1:] == ordered[:-1]).any():
        raise ValueError("Expected each graph at most once, got some twice")
    return ids


def positions_to_load(graphs: Sequence[int] | np.ndarray | None, count: int) -> np.ndarray:
    """Those that a loader makes batches of: of at least one graph, and of all where none are named."""
    chosen = positions(slice(None) if graphs is None else graphs, count)
    if not len(chosen):
        raise ValueError("Expected at least one graph to load, got none: is the split empty?")
    return chosen
