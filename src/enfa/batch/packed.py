"""Batches as single blocks of bytes, made by worker processes in memory that they share with the main one.

A worker slices, prepares, pads and writes a batch into its place in a ring; what it sends is one small number. The main
process knows what stands where in a block, because padding has left only a few shapes.
"""

from __future__ import annotations

import mmap
import multiprocessing
import os
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from enfa.batch.buckets import Buckets
from enfa.batch.dataset import CompiledDataset
from enfa.batch.fill import Block, Filler
from enfa.batch.loader import Batches
from enfa.batch.padding import Bucket, Form, countable
from enfa.batch.workers import Workers
from enfa.plan.prepare import Needs, lean, prepare
from enfa.plan.table import Plan

__all__ = ["Packed", "PackedLoader", "default_workers"]

T = TypeVar("T")
SAMPLES = 48
_HELD = 3  # batches that whoever reads them may still need while the next are made
_AHEAD = 3  # batches that each worker makes ahead


def default_workers() -> int:
    """One process for every core but one, and at most 15."""
    return max(1, min(15, len(os.sched_getaffinity(0)) - 1 if hasattr(os, "sched_getaffinity") else 1))


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


class _Writer:
    """(Epoch, number of the batch in it, place in the ring) -> number of the bucket, or -1. Runs in the workers."""

    def __init__(
        self, compiled: CompiledDataset, needs: Needs, sampled: Batches, buckets: Buckets, ring: np.ndarray
    ) -> None:
        self.compiled, self.needs, self.sampled = compiled, needs, sampled
        self.buckets, self.ring = buckets, ring
        self._arrays: dict[tuple[int, int], list[np.ndarray]] = {}
        self._blocks: dict[tuple[int, int], Block] = {}
        self._fillers: dict[Form, Filler | None] = {}
        self._epoch: tuple[int, list[np.ndarray]] = -1, []

    def __call__(self, epoch: int, i: int, place: int) -> int:
        if self._epoch[0] != epoch:
            self._epoch = epoch, self.sampled.batches(epoch)
        plan = self.compiled.plan(self._epoch[1][i], tables=self.needs.tables)
        form, numbers = self.buckets.of(plan)
        if form is None or not countable(plan):
            return -1
        if form not in self._fillers:
            self._fillers[form] = Filler(form, self.needs) if Filler.takes(form.plan, self.needs) else None
        filler = self._fillers[form]
        if filler is not None:
            filled = filler.fill(plan, (self._block(filler, number, place) for number in numbers))
            return -1 if filled is None else numbers[filled]
        found = self.buckets.find(prepare(plan, self.needs))
        if found is None:
            return -1
        self.buckets.all[found[0]].write(found[1], self._in_ring(found[0], place))
        return found[0]

    def _in_ring(self, number: int, place: int) -> list[np.ndarray]:
        """A bucket's arrays in a place of the ring."""
        if (number, place) not in self._arrays:
            self._arrays[number, place] = self.buckets.all[number].arrays(self.ring[place])
        return self._arrays[number, place]

    def _block(self, filler: Filler, number: int, place: int) -> Block:
        if (number, place) not in self._blocks:
            self._blocks[number, place] = filler.block(self.buckets.all[number], self._in_ring(number, place))
        return self._blocks[number, place]


def lean_plan(compiled: CompiledDataset, graphs: np.ndarray, needs: Needs) -> Plan:
    return lean(prepare(compiled.plan(graphs, tables=needs.tables), needs), needs)


class PackedLoader:
    """Yields :class:`Packed` batches in the order of :class:`enfa.DataLoader`, whatever the number of workers.

    Workers go on with the next epoch's batches while the main process does something else between two epochs.

    Args:
        compiled, batch_size, shuffle, seed, graphs: as in :class:`enfa.DataLoader`.
        needs: ``model.needs``.
        num_workers: processes; 0 makes batches in this one. They are forked, so where that is impossible there are none.
        pin: register the ring with CUDA, so that copies to a GPU do not wait.
        keep: without shuffling, keep up to so many bytes of blocks after the first epoch, and make none again.
    """

    def __init__(
        self,
        compiled: CompiledDataset,
        needs: Needs,
        batch_size: int = 32,
        shuffle: bool = False,
        num_workers: int = 0,
        seed: int = 0,
        *,
        graphs: Sequence[int] | np.ndarray | None = None,
        pin: bool = False,
        keep: int = 2**30,
    ) -> None:
        chosen = compiled.positions(slice(None) if graphs is None else graphs)
        if len(chosen) == 0:
            raise ValueError("Expected at least one graph to load, got none: is the split empty?")
        self.compiled, self.needs = compiled, needs
        self.sampled = self.sampler = Batches(chosen, batch_size, shuffle, seed, False, None, None, (0, 1))
        self.pin, self.keep = pin, 0 if shuffle else keep
        self.buckets = Buckets(lean_plan(compiled, g, needs) for g in self._sample())
        self.unpadded = 0  # batches so far that no bucket held
        workers = num_workers if "fork" in multiprocessing.get_all_start_methods() else 0
        self.num_workers = min(workers, 2 * len(self) if shuffle else len(self))  # which go on with the next epoch
        places = self.num_workers * _AHEAD + _HELD + 1
        if self.num_workers:  # a multiple, so that each worker has places of its own: memory is slow when first touched
            places = -(-places // self.num_workers) * self.num_workers
        size = -(-max(self.buckets.nbytes, 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        # anonymous: files in /dev/shm are often limited to a few megabytes
        self._memory = mmap.mmap(-1, places * size)
        self.ring = np.frombuffer(self._memory, np.uint8).reshape(places, size)
        self._blocks = torch.from_numpy(self.ring)
        self._given: list[Packed | None] = [None] * places
        self._kept: list[Packed] | None = None
        self._write = _Writer(compiled, needs, self.sampled, self.buckets, self.ring)
        self._workers: Workers | None = None
        self._registered: Any = None  # what undoes it
        # what is made next and what is taken next: epoch, number of the batch in it
        self._made = self._taken = (0, 0)
        self._place = 0  # in the ring, of what is taken next
        self._pass: object = None  # the one that is going on

    def _sample(self) -> list[np.ndarray]:
        """Batches to choose sizes by: of epochs that no run gets to, and the last, smaller ones of some more."""
        if not self.sampled.shuffle:
            every = self.sampled.batches()
            return every if len(every) <= SAMPLES else [*every[:: -(-len(every) // SAMPLES)], every[-1]]
        found: list[np.ndarray] = []
        rests: list[np.ndarray] = []
        for epoch in range(2**30, 2**30 + SAMPLES // 4):
            batches = self.sampled.batches(epoch)
            if len(batches[-1]) < self.sampled.batch_size:
                rests.append(batches.pop())
            found += batches[: SAMPLES - len(found)]
        return found + rests

    def set_epoch(self, epoch: int) -> None:
        """The next pass over the loader is this epoch."""
        self.sampled.set_epoch(epoch)

    def __len__(self) -> int:
        return len(self.sampled)

    def __iter__(self) -> Iterator[Packed]:
        epoch = self.sampled.epoch
        try:
            yield from self._epoch(epoch) if self._kept is None else self._kept
        finally:  # a pass that is broken off counts too
            if self.sampled.epoch == epoch:
                self.sampled.epoch = epoch + 1

    def _epoch(self, epoch: int) -> Iterator[Packed]:
        batches = self.sampled.batches(epoch)
        self._pass = mine = object()
        self._or_close(lambda: self._begin(epoch))
        kept: list[Packed] | None = [] if self.keep else None
        for graphs in batches:
            if self._pass is not mine:
                raise RuntimeError("Expected one pass over a loader at a time, and another one has begun: use two loaders")
            number = self._or_close(self._take)
            packed = self._packed(graphs, number, self._place)
            self._place = (self._place + 1) % len(self.ring)
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
        self._register()
        while self._workers is not None and self._workers.waiting:  # not wanted any more
            self._workers.take()
        self._made = self._taken = (epoch, 0)

    def _following(self, at: tuple[int, int]) -> tuple[int, int]:
        return (at[0] + 1, 0) if at[1] + 1 == len(self) else (at[0], at[1] + 1)

    def _take(self) -> int:
        """The bucket of the next batch. New tasks are given out as far ahead as there is room."""
        self._taken = self._following(self._taken)
        if self._workers is None:
            self._free(self._place)
            at, self._made = self._made, self._taken
            return self._write(*at, self._place)
        while self._workers.waiting < self.num_workers * _AHEAD:
            place = (self._place + self._workers.waiting) % len(self.ring)
            self._free(place)
            self._workers.give((*self._made, place))
            self._made = self._following(self._made)
        return self._workers.take()

    def _free(self, place: int) -> None:
        """Wait until a place of the ring may be written again."""
        given, self._given[place] = self._given[place], None
        if given is not None and given.copied is not None:
            given.copied.synchronize()

    def close(self) -> None:
        """End the workers, and let CUDA forget the ring. A further pass starts again."""
        if self._workers is not None:
            self._workers.close()
            self._workers = None
        if self._registered is not None:
            torch.cuda.synchronize()  # nothing is being copied any more
            self._registered()
            self._registered = None

    def _packed(self, graphs: np.ndarray, number: int, place: int) -> Packed:
        if number < 0:
            self.unpadded += 1
            return Packed(graphs, None, None, lean_plan(self.compiled, graphs, self.needs))
        bucket = self.buckets.all[number]
        packed = self._given[place] = Packed(graphs, bucket, self._blocks[place, : bucket.nbytes])
        return packed

    def _keep(self, kept: list[Packed], packed: Packed) -> list[Packed] | None:
        if packed.block is not None:
            if packed.block.numel() + sum(p.block.numel() for p in kept if p.block is not None) > self.keep:
                self.keep = 0
                return None
            block = packed.block.clone()
            packed = Packed(packed.graphs, packed.bucket, block.pin_memory() if self.pin else block)
        return [*kept, packed]

    def _register(self) -> None:
        """After the workers were forked, so that they share nothing with CUDA."""
        if self.pin and not self.keep and self._registered is None:  # blocks that are kept are pinned one by one
            runtime, first = torch.cuda.cudart(), self._blocks.data_ptr()
            code = int(runtime.cudaHostRegister(first, self._blocks.numel(), 0))
            if code:
                self.pin = False
                warnings.warn(f"Copies to the GPU will wait: CUDA could not register memory (error {code})", stacklevel=2)
            else:  # also when nobody closes it: memory that is freed while it is registered spoils its addresses
                self._registered = weakref.finalize(self, runtime.cudaHostUnregister, first)
