"""What a worker does: cut a batch out of the dataset, and write it into its place in the ring."""

import numpy as np

from enfa.batch.batches import Batches
from enfa.batch.dataset import CompiledDataset
from enfa.batch.positions import SLICING
from enfa.batch.shards.dataset import Compiled, ShardedDataset
from enfa.batch.static.buckets import Buckets
from enfa.batch.static.fill import Block, Filler
from enfa.batch.static.padding import Form
from enfa.plan.derived.prepare import Needs, lean, prepare
from enfa.plan.table import Plan

__all__ = ["Writer", "lean_plan"]


class Writer:
    """(Epoch, number of the batch in it, place in the ring) -> number of the bucket, or -1. Runs in the workers."""

    def __init__(self, compiled: Compiled, needs: Needs, sampled: Batches, buckets: Buckets, ring: np.ndarray) -> None:
        self.compiled, self.needs, self.sampled = compiled, needs, sampled
        self.buckets, self.ring = buckets, ring
        self._blocks: dict[tuple[int, int], Block] = {}
        self._fillers: dict[Form, Filler] = {}
        # before processes are forked, so that they share what it keeps
        self._cutter = compiled.cutter(needs)
        self._epoch: tuple[int, list[np.ndarray]] = -1, []

    def __call__(self, epoch: int, i: int, place: int) -> int:
        with SLICING:  # a cut reads the dataset's scratch until it is written
            return self._written(epoch, i, place)

    def _written(self, epoch: int, i: int, place: int) -> int:
        if self._epoch[0] != epoch:
            self._epoch = epoch, self.sampled.parts(epoch)
        graphs = self._epoch[1][i]
        if isinstance(self.compiled, ShardedDataset):
            self.compiled.follow(self.sampled, epoch, i)
        cut = None if self._cutter is None else self._cutter.cut(graphs)
        if cut is None:
            plan = self.compiled.plan(graphs)
        else:
            assert isinstance(self.compiled, CompiledDataset)
            plan = self.compiled.labelled(cut.plan)
        form, numbers = self.buckets.of(plan)
        if form is None or not plan.countable:
            return -1
        if form not in self._fillers:
            self._fillers[form] = Filler(form, self.needs)
        filled = self._fillers[form].fill(cut or plan, (self._block(form, number, place) for number in numbers))
        return -1 if filled is None else numbers[filled]

    def _block(self, form: Form, number: int, place: int) -> Block:
        if (number, place) not in self._blocks:
            bucket = self.buckets.all[number]
            self._blocks[number, place] = self._fillers[form].block(bucket, bucket.arrays(self.ring[place]))
        return self._blocks[number, place]


def lean_plan(compiled: Compiled, graphs: np.ndarray, needs: Needs) -> Plan:
    return lean(prepare(compiled.plan(graphs), needs), needs)
