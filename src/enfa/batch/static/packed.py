"""Batches as single blocks of bytes, made by worker processes in memory that they share with the main one.

A worker slices, prepares, pads and writes a batch into one of its places in a ring; what it sends are small numbers. The main
process knows what stands where in a block, because padding has left only a few shapes.
"""

import multiprocessing
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from enfa.ahead import ready
from enfa.batch.batches import Batches
from enfa.batch.positions import positions_to_load
from enfa.batch.shards.dataset import Compiled
from enfa.batch.static.buckets import Buckets
from enfa.batch.static.padding import Bucket
from enfa.batch.static.ring import Ring
from enfa.batch.static.samples import samples
from enfa.batch.static.workers import Workers
from enfa.batch.static.writing import Writer, lean_plan
from enfa.plan.derived.prepare import Needs
from enfa.plan.table import Plan

__all__ = ["Packed", "PackedLoader", "check_outputs"]

T = TypeVar("T")
_HELD = 3  # batches that may still be read while the next are made
_AHEAD = 3  # batches that each worker makes ahead


def check_outputs(compiled: Compiled, needs: Needs) -> None:
    for number, name in needs:
        if name == "place":
            kind = compiled.program.steps[number].kind
            raise ValueError(
                f"Expected a model whose outputs are of graphs, because padding would add to the others, got one that takes a "
                f"row for each of the {kind} (bag.each): use enfa.DataLoader"
            )


@dataclass
class Packed:
    """A batch. Its block is valid until three more batches have been taken from the loader, or ``copied`` is over."""

    graphs: np.ndarray
    bucket: Bucket | None
    block: Tensor | None  # uint8 on the CPU
    large: Plan | None = None  # instead, for a batch that no bucket holds: lean, not padded
    copied: Any = field(default=None, repr=False)  # an event: the block has been read, and may be written again

    @property
    def plan(self) -> Plan:
        """The batch as a plan on the CPU, whose arrays are parts of the block."""
        if self.bucket is None or self.block is None:
            assert self.large is not None
            return self.large
        return self.bucket.view(self.block)


def _told(compiled: Any) -> list[Any]:
    """What tells whether labels and attributes of graphs are those of before."""
    named = (getattr(compiled, "graph_attr", None) or {}).values()
    held = [getattr(compiled, "y", None), getattr(compiled, "node_y", None), *named]
    return [(t.data_ptr(), t.dtype, t.shape, t._version) for t in held if isinstance(t, Tensor)]


class PackedLoader:
    """Yields :class:`Packed` batches in the order of :class:`enfa.DataLoader`, whatever the number of workers.

    Workers go on with the next epoch's batches while the main process does something else between two epochs.

    Args:
        compiled, batch_size, shuffle, seed, graphs: as in :class:`enfa.DataLoader`.
        needs: what the model reads of plans, ``program.needs``. By default, or given the model that the dataset was compiled
            for, what it was seen to read then.
        num_workers: processes; 0 makes batches in this one. They are forked, so where that is impossible there are none.
        pin: register the ring with CUDA, so that copies to a GPU do not wait.
        sampled: the batches, instead of batch_size, shuffle, seed and graphs; of one epoch as many as of another.
        keep: without shuffling, keep up to so many bytes of blocks after the first epoch, and make none again.
    """

    def __init__(
        self,
        compiled: Compiled,
        needs: Needs | nn.Module | None = None,
        batch_size: int = 32,
        shuffle: bool = False,
        num_workers: int = 0,
        seed: int = 0,
        *,
        graphs: Sequence[int] | np.ndarray | None = None,
        pin: bool = False,
        keep: int = 2**30,
        sampled: Batches | None = None,
    ) -> None:
        if sampled is None:
            chosen = positions_to_load(graphs, len(compiled))
            single = compiled.single_node if compiled.program.counted else None
            sampled = Batches(chosen, batch_size, shuffle, seed, windows=compiled.windows, single=single)
        needs = compiled.program.needs if needs is None or isinstance(needs, nn.Module) else needs
        check_outputs(compiled, needs)
        ready("batches", "cut")  # the kernels, where processes have begun to compile them
        self.compiled, self.needs = compiled, needs
        self.sampled = self.sampler = sampled
        self.pin, self.keep = pin, 0 if sampled.shuffle else keep
        self.buckets = Buckets(lean_plan(compiled, g, needs) for g in samples(compiled, sampled))
        self.unpadded = 0  # batches so far that no bucket held
        workers = num_workers if "fork" in multiprocessing.get_all_start_methods() else 0
        # they go on with the next epoch; where blocks are kept there is none, and starting one takes as long as some batches
        once = len(self) * self.buckets.nbytes <= self.keep
        self.num_workers = min(workers, -(-len(self) // 4) if once else 2 * len(self) if sampled.shuffle else len(self))
        places = self.num_workers * _AHEAD + _HELD + 1
        if self.num_workers:  # as many for each
            places = -(-places // self.num_workers) * self.num_workers
        self.ring = Ring(places, self.buckets.nbytes)
        self._held: deque[tuple[int, Packed | None]] = deque()  # the places of the last batches, and what is there
        self._kept: list[Packed] | None = None
        self._told = _told(compiled)
        self._write = Writer(compiled, needs, self.sampled, self.buckets, self.ring.bytes)
        self._workers: Workers | None = None
        # what is made next and what is taken next: epoch, number of the batch in it
        self._made = self._taken = (0, 0)
        self._pass: object = None  # the one that is going on
        if self.num_workers:
            self._write(0, 0, 0)  # what numba compiles on the way is compiled here, not in every worker

    def set_epoch(self, epoch: int) -> None:
        """The next pass over the loader is this epoch."""
        self.sampled.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.sampled)

    def __iter__(self) -> Iterator[Packed]:
        epoch = self.sampled.epoch
        told = _told(self.compiled)
        if told != self._told:  # blocks that are kept, and workers, have labels of before
            self._told, self._kept, self._taken = told, None, (-1, 0)
            self.close()
        try:
            yield from self._epoch(epoch) if self._kept is None else self._kept
        finally:  # a pass that is broken off counts too
            if self.sampled.epoch == epoch:
                self.sampled.epoch = epoch + 1

    def _epoch(self, epoch: int) -> Iterator[Packed]:
        batches = self.sampled.parts(epoch)
        self._pass = mine = object()
        self._or_close(lambda: self._begin(epoch))
        kept: list[Packed] | None = [] if self.keep else None
        for graphs in batches:
            if self._pass is not mine:
                raise RuntimeError("Expected one pass over a loader at a time, and another one has begun: use two loaders")
            number, place = self._or_close(self._take)
            packed = self._packed(graphs, number, place)
            if kept is not None:
                kept = self._keep(kept, packed)
            yield packed
        if kept is not None:
            self._kept = kept
            self.close()

    def _or_close(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except BaseException:  # Ctrl-C, say: what the workers are at is not known any more
            self.close()
            self._taken = (-1, 0)
            raise

    def _begin(self, epoch: int) -> None:
        """Make the stream of batches stand at the beginning of an epoch, where it is unless a pass was broken off."""
        if self._taken == (epoch, 0) and self._workers is not None:
            return
        if self._workers is None and self.num_workers:
            self._workers = Workers(self.num_workers, self._write)
            for place in self._not_held():
                self._workers.free(place)
        # after the workers were forked, so that they share nothing with CUDA; blocks that are kept are pinned one by one
        if self.pin and not self.keep:
            self.pin = self.ring.register()
        while self._workers is not None and self._workers.waiting:  # not wanted any more
            self._workers.free(self._workers.take()[1])
        self._made = self._taken = (epoch, 0)

    def _following(self, at: tuple[int, int]) -> tuple[int, int]:
        return (at[0] + 1, 0) if at[1] + 1 == len(self) else (at[0], at[1] + 1)

    def _take(self) -> tuple[int, int]:
        """The bucket of the next batch, and its place. New tasks are given out as far ahead as there is room."""
        self._taken = self._following(self._taken)
        freed = self._freed()
        if self._workers is None:
            at, self._made = self._made, self._taken
            place = self._not_held()[0]
            return self._write(*at, place), place
        if freed is not None:
            self._workers.free(freed)
        while self._workers.waiting < self.num_workers * _AHEAD:
            self._workers.give(self._made)
            self._made = self._following(self._made)
        return self._workers.take()

    def _freed(self) -> int | None:
        """A place of the ring that may be written again, once there is none to spare. As late as that, to wait for nothing."""
        if len(self._held) < len(self.ring) - self.num_workers * _AHEAD:
            return None
        place, packed = self._held.popleft()
        if packed is not None and packed.copied is not None:
            packed.copied.synchronize()
        return place

    def _not_held(self) -> list[int]:
        return sorted(set(range(len(self.ring))) - {place for place, _ in self._held})

    def close(self) -> None:
        """End the workers, and let CUDA forget the ring. A further pass starts again."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        self.ring.unregister()

    def _packed(self, graphs: np.ndarray, number: int, place: int) -> Packed:
        if number < 0:
            self.unpadded += 1
            self._held.append((place, None))
            return Packed(graphs, None, None, lean_plan(self.compiled, graphs, self.needs))
        bucket = self.buckets.all[number]
        packed = Packed(graphs, bucket, self.ring.blocks[place, : bucket.nbytes])
        self._held.append((place, packed))
        return packed

    def _keep(self, kept: list[Packed], packed: Packed) -> list[Packed] | None:
        if packed.block is not None:
            if packed.block.numel() + sum(p.block.numel() for p in kept if p.block is not None) > self.keep:
                self.keep = 0
                return None
            block = packed.block.clone()
            packed = Packed(packed.graphs, packed.bucket, block.pin_memory() if self.pin else block)
        return [*kept, packed]
