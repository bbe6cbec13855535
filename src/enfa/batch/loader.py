"""Loading batches of a compiled dataset."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from enfa.batch.batches import Batches
from enfa.batch.positions import positions_to_load
from enfa.batch.sent import Sending, received
from enfa.batch.shards.dataset import Compiled, ShardedDataset
from enfa.cores import cores
from enfa.edits import Subsample
from enfa.graphs.numbers import whole
from enfa.plan.derived.prepare import Needs, prepare
from enfa.plan.table import Plan

if TYPE_CHECKING:
    from enfa.batch.static.packed import PackedLoader

__all__ = ["DataLoader", "default_workers"]


def default_workers() -> int:
    """One process for every core but one, and at most 15."""
    return max(1, min(15, cores() - 1 if hasattr(os, "fork") else 1))  # where none is forked, each imports PyTorch anew


class _Plans(torch.utils.data.Dataset):
    """(Epoch, number of the batch in it, array of graph numbers) -> plan. Runs in the worker processes."""

    def __init__(
        self, compiled: Compiled, sampled: Batches, needs: Needs | None, draw: Subsample | None, score: np.ndarray | None
    ) -> None:
        self.compiled, self.sampled, self.needs, self.draw, self.score = compiled, sampled, needs, draw, score

    def __len__(self) -> int:
        """Graphs to draw from: scripts divide by ``len(loader.dataset)``."""
        return len(self.sampled.graphs)

    def __getitem__(self, batch: tuple[int, int, np.ndarray]) -> Plan:
        epoch, number, graphs = batch
        if isinstance(self.compiled, ShardedDataset):
            self.compiled.follow(self.sampled, epoch, number)
        plan = self.compiled.plan(graphs, self.draw, epoch, self.score)
        return plan if self.needs is None else prepare(plan, self.needs)


class DataLoader(torch.utils.data.DataLoader):
    """Yields plans that models take directly, with ``y`` and ``graph_ids``.

    Args:
        compiled: from :func:`enfa.compile`, or an :class:`enfa.ShardedDataset`.
        graphs: which of its graphs (a split, as numbers or as a mask), all by default. Several loaders may share
            one compiled dataset.
        batch_size: graphs per batch, at most. A last batch of one graph of one node, which BatchNorm refuses, gets a graph of
            the batch before it.
        shuffle: a new order each epoch, a function of (seed, epoch). The epoch counts up by itself, also after a
            pass that is broken off; :meth:`set_epoch` sets it (for a resumed run). Of a sharded dataset, window by window.
        num_workers: processes that slice ahead; 0 slices in this one. By default none, for a GPU one for every core but one.
        max_rows: at most so many rows per batch, summed over layers and counted without the sharing between
            graphs, so a bound. A graph that exceeds it alone gets a batch of its own; and a graph of one node, with a row in
            each layer, goes with another whatever that has, because BatchNorm refuses a batch of one pair.
        drop_last: leave out a last batch that is not full.
        shard: ``(rank, ranks)`` in distributed training: of every batch this loader yields the graphs rank, rank +
            ranks, …; so the ranks' parts together are the batches of one process. A part may be empty.
        needs: ``compiled.program.needs``, to prepare the plans for a GPU here, in the workers, rather than there.
        draw: an :class:`enfa.Subsample`: each epoch, a new part of every compiled bag, which must be its ``.policy``'s.
        score: what to draw by: a number for every compiled subgraph.
        device: where the batches are to be. For a GPU they are padded to a few sizes, on which models are captured as CUDA
            graphs (:func:`enfa.captured`), packed by the workers and copied while the batch before is computed. Batches that
            cannot be padded come as they are, with one warning.
        pad: False for a GPU's batches as they are: for a model that reads numbers of nodes or subgraphs.
    """

    def __init__(
        self,
        compiled: Compiled,
        batch_size: int = 32,
        shuffle: bool = False,
        num_workers: int | None = None,
        max_rows: int | None = None,
        seed: int = 0,
        *,
        device: str | torch.device | None = None,
        pad: bool = True,
        graphs: Sequence[int] | np.ndarray | None = None,
        drop_last: bool = False,
        shard: tuple[int, int] = (0, 1),
        needs: Needs | None = None,
        draw: Subsample | None = None,
        score: np.ndarray | None = None,
        **options: Any,
    ) -> None:
        if isinstance(compiled, torch.utils.data.Subset) and isinstance(compiled.dataset, Compiled):
            raise TypeError("Expected a compiled dataset, got a Subset of it: pass subset.dataset, and graphs=subset.indices")
        if not isinstance(compiled, Compiled):
            raise TypeError(
                f"Expected what enfa.compile(graphs, policy, model) returns, or an enfa.ShardedDataset of what it wrote, got "
                f"{type(compiled).__name__}: compile the graphs first"
            )
        for name in ("sampler", "batch_sampler"):
            if options.get(name) is not None:
                raise TypeError(
                    f"Expected batches that this loader makes, which have every graph at most once, got {name}: choose graphs "
                    f"with graphs=..., weigh them in the loss, or take compiled[numbers] in a loop of your own"
                )
        if (shuffle or draw is not None) and options.get("generator") is not None:
            raise TypeError("Expected seed=..., of which the orders and draws of all epochs are a function, got generator")
        batch_size, seed = whole("batch_size", batch_size, 1), whole("seed", seed, 0)
        max_rows = None if max_rows is None else whole("max_rows", max_rows, 1)
        pair = isinstance(shard, (tuple, list)) and len(shard) == 2 and all(isinstance(n, int) for n in shard)
        if not pair or not 0 <= shard[0] < shard[1]:
            raise ValueError(f"Expected shard to be (rank, ranks) with 0 <= rank < ranks, got {shard}")
        if draw is not None:
            compiled.checked_draw(draw)
        elif score is not None:
            raise ValueError("Expected 'draw', which 'score' is for, got 'score' without it")
        chosen = positions_to_load(graphs, len(compiled))
        cost = compiled.rows_per_graph() if max_rows is not None else None
        least = sum(step.op == "propagate" for step in compiled.program.steps)
        single = compiled.single_node if compiled.program.counted else None
        self.sampled = Batches(
            chosen, batch_size, shuffle, seed, drop_last, cost, max_rows, shard, compiled.windows, least, single
        )
        self.device, self.packed = _checked(device), None
        if self.device is not None:
            why = "max_rows" if max_rows is not None else None if draw is None else "draw"
            if num_workers is None:  # of a sharded dataset, each has a window of its own
                num_workers = min(default_workers(), 2) if isinstance(compiled, ShardedDataset) else default_workers()
            needs = needs or compiled.program.needs
            if "collate_fn" in options:
                why = "collate_fn"
            self.packed = _packed(compiled, self.sampled, needs, num_workers, why) if pad else None
        num_workers = 0 if num_workers is None or self.packed is not None else num_workers
        # torch draws a seed for the workers: not from the global generator, whose next numbers are dropout's
        options.setdefault("generator", torch.Generator().manual_seed(seed))
        super().__init__(
            _Plans(compiled, self.sampled, needs, draw, score),
            batch_size=None,
            sampler=self.sampled,
            num_workers=num_workers,
            persistent_workers=options.pop("persistent_workers", num_workers > 0),
            collate_fn=Sending(options.pop("collate_fn", None)),
            **options,
        )

    def set_epoch(self, epoch: int) -> None:
        """The next pass over the loader is this epoch."""
        self.sampled.set_epoch(epoch)

    def close(self) -> None:
        """End the workers of a loader with a device. A further pass starts others."""
        if self.packed is not None:
            self.packed.close()

    def _batches(self) -> Iterator[Plan]:
        if self.device is None:
            return received(super().__iter__())
        from enfa.batch.static.arriving import Arrivals, unpadded

        packed = map(unpadded, received(super().__iter__())) if self.packed is None else self.packed
        return iter(Arrivals(packed, self.device))

    def __iter__(self) -> Iterator[Plan]:  # type: ignore[override]
        return self.sampled.one_pass(self._batches, self.persistent_workers)


def _checked(device: str | torch.device | None) -> torch.device | None:
    """A GPU; None: batches stay where they are made."""
    found = torch.device("cpu" if device is None else device)
    if found.type == "cpu":
        return None
    if found.type != "cuda" or not torch.cuda.is_available():
        raise ValueError(f"Expected a GPU that torch can use, or the CPU, got device={str(device)!r}")
    return torch.device("cuda", torch.cuda.current_device() if found.index is None else found.index)


def _packed(compiled: Compiled, sampled: Batches, needs: Needs, workers: int, why: str | None) -> PackedLoader | None:
    """What pads the batches; None, with a warning, where they cannot be. ``why``: an option that makes every batch another."""
    from enfa.batch.static.packed import PackedLoader, check_outputs

    try:
        if why is not None:
            raise ValueError(f"Expected batches of as many graphs each, with the same rows in every epoch, got {why}")
        check_outputs(compiled, needs)
    except ValueError as error:
        warnings.warn(f"Batches are not padded, so no model is captured on them, and steps run eagerly: {error}", stacklevel=3)
        return None
    return PackedLoader(compiled, needs, num_workers=workers, pin=True, sampled=sampled)
