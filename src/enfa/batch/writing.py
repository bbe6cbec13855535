"""What a worker does: cut a batch out of the dataset, and write it into its place in the ring."""

from __future__ import annotations

import numpy as np

from enfa.batch.dataset import SLICING, CompiledDataset
from enfa.batch.fill import Block, Filler
from enfa.batch.loader import Batches
from enfa.batch.static.buckets import Buckets
from enfa.batch.static.padding import Form
from enfa.plan.prepare import Needs, lean, prepare
from enfa.plan.table import Plan

__all__ = ["Writer", "lean_plan"]


class Writer:
    """(Epoch, number of the batch in it, place in the ring) -> number of the bucket, or -1. Runs in the workers."""

    def __init__(
        self, compiled: CompiledDataset, needs: Needs, sampled: Batches, buckets: Buckets, ring: np.ndarray
    ) -> None:
        self.compiled, self.needs, self.sampled = compiled, needs, sampled
        self.buckets, self.ring = buckets, ring
        self._arrays: dict[tuple[int, int], list[np.ndarray]] = {}
        self._blocks: dict[tuple[int, int], Block] = {}
        self._fillers: dict[Form, Filler | None] = {}
        # before processes are forked, so that they share what it keeps
        self._cutter = compiled.cutter(needs) if any(Filler.takes(f.plan, needs) for f in buckets.forms) else None
        self._epoch: tuple[int, list[np.ndarray]] = -1, []

    def __call__(self, epoch: int, i: int, place: int) -> int:
        with SLICING:  # a cut reads the dataset's scratch until it is written
            return self._written(epoch, i, place)

    def _written(self, epoch: int, i: int, place: int) -> int:
        if self._epoch[0] != epoch:
            self._epoch = epoch, self.sampled.batches(epoch)
        graphs = self._epoch[1][i]
        cut = None if self._cutter is None else self._cutter.cut(graphs)
        plan = self.compiled.plan(graphs, tables=self.needs.tables) if cut is None else self.compiled.labelled(cut.plan)
        form, numbers = self.buckets.of(plan)
        if form is None or not plan.countable:
            return -1
        if form not in self._fillers:
            self._fillers[form] = Filler(form, self.needs) if Filler.takes(form.plan, self.needs) else None
        filler = self._fillers[form]
        if filler is not None:
            filled = filler.fill(cut or plan, (self._block(filler, number, place) for number in numbers))
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
