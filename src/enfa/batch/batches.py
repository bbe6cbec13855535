"""Which graphs are in which batch of an epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch

from enfa.batch.shards.reading.order import Cuts, Windows
from enfa.plan.table import Plan

__all__ = ["Batches"]


class Batches(torch.utils.data.Sampler):
    """The batches of one epoch: a function of (seed, epoch), whatever else draws random numbers."""

    def __init__(
        self,
        graphs: np.ndarray,
        batch_size: int,
        shuffle: bool,
        seed: int,
        drop_last: bool = False,
        cost: np.ndarray | None = None,
        max_rows: int | None = None,
        shard: tuple[int, int] = (0, 1),
        windows: Windows | None = None,
        least: int = 0,
        single: Callable[[int], bool] | None = None,
    ) -> None:
        """``windows``: of a sharded dataset, which decide the order. ``least``: what a single node costs. ``single``: whether a
        graph has, by itself, no statistics for the model's norms; None: it has no such norms."""
        self.graphs, self.batch_size, self.shuffle = graphs, batch_size, shuffle
        self.seed, self.drop_last, self.cost, self.max_rows = seed, drop_last, cost, max_rows
        self.shard, self.windows, self.least, self.single = shard, windows, least, single
        self.epoch = 0
        self._pass: object = None  # the last one that has begun
        self._cut: tuple[int, list[np.ndarray], Cuts] | None = None  # of an epoch: its batches, and in which window each is

    def set_epoch(self, epoch: int) -> None:
        """Found by this name on the sampler by trainers that resume runs."""
        self.epoch = epoch

    def batches(self, epoch: int | None = None) -> list[np.ndarray]:
        epoch = 0 if not self.shuffle else self.epoch if epoch is None else epoch
        rng = np.random.default_rng([self.seed, epoch]) if self.shuffle else None
        if self.windows is None:
            return self._batches(self.graphs if rng is None else self.graphs[rng.permutation(len(self.graphs))])
        if self._cut is None or self._cut[0] != epoch:
            order, ends = self.windows.order(self.graphs, rng)
            found = self._batches(order)
            self._cut = epoch, found, Cuts(ends, found)
        return self._cut[1]

    def _batches(self, order: np.ndarray) -> list[np.ndarray]:
        """An order, cut. A single node takes the next graph along, or goes with those before it, however many rows these have:
        BatchNorm has no statistics of one pair."""
        if self.cost is None:
            found = [order[i : i + self.batch_size] for i in range(0, len(order), self.batch_size)]
            short = self.drop_last and found and len(found[-1]) < self.batch_size
            return found[:-1] if short else self._in_company(found)
        found, start, rows = [], 0, 0
        for end, graph in enumerate(order):
            more = int(self.cost[graph])
            full = end - start >= self.batch_size
            if self.max_rows is not None and rows > self.least and rows + more > self.max_rows:
                full = True
            if full:
                found.append(order[start:end])
                start, rows = end, 0
            rows += more
        rest = len(order) - start
        if rest == 0 or (self.drop_last and rest < self.batch_size):
            return found
        if rows <= self.least and found and len(found[-1]) + rest <= self.batch_size:
            start -= len(found.pop())
        return self._in_company([*found, order[start:]])

    def _in_company(self, found: list[np.ndarray]) -> list[np.ndarray]:
        """A last graph by itself, without statistics for a norm, gets the last one of the batch before it: all graphs are in as
        many batches as ever."""
        if self.single is None or len(found) < 2 or len(found[-1]) > 1 or not self.single(int(found[-1][0])):
            return found
        *others, before, last = found
        if len(before) == 1 or (len(before) == 2 and self.single(int(before[0]))):
            return found
        return [*others, before[:-1], np.concatenate([before[-1:], last])]

    def part(self, batch: np.ndarray) -> np.ndarray:
        """The graphs of a batch that this rank takes."""
        rank, of = self.shard
        return batch[rank::of] if self.windows is None or of == 1 else self.windows.part(batch, rank, of)

    def cuts(self, epoch: int) -> Cuts:
        """Of a sharded dataset: in which of its windows batches are cut."""
        self.batches(epoch)
        assert self._cut is not None
        return self._cut[2]

    def in_window(self, epoch: int, window: int, of: tuple[int, int]) -> np.ndarray:
        """The graphs that a window has for this rank; ``of``: and for one of several processes, which take batches in turn."""
        batches, cuts = self.batches(epoch), self.cuts(epoch)
        mine = [n for n in cuts.batches(window) if n % of[1] == of[0]]
        found = [np.empty(0, np.int64), *(self.part(batches[n]) for n in mine)]
        carried = cuts.carried(window)
        if carried is not None and carried[0] % of[1] == of[0]:
            part = self.part(batches[carried[0]])
            found.append(part[np.isin(part, batches[carried[0]][: carried[1]])])
        return np.concatenate(found)

    def parts(self, epoch: int | None = None) -> list[np.ndarray]:
        """What is this process's of every batch."""
        return [self.part(batch) for batch in self.batches(epoch)]

    def __iter__(self) -> Iterator[tuple[int, int, np.ndarray]]:
        return iter([(self.epoch, number, part) for number, part in enumerate(self.parts())])

    def one_pass(self, batches: Callable[[], Iterator[Plan]], alone: bool) -> Iterator[Plan]:
        """A pass of a loader over what it makes of these batches, which counts as an epoch. ``alone``: its workers go on from
        pass to pass, so that a second one would take batches of the first."""
        epoch, mine = self.epoch, object()
        self._pass = mine
        try:
            for batch in batches():
                yield batch
                if alone and self._pass is not mine:
                    raise RuntimeError(
                        "Expected one pass at a time over a loader whose workers go on from pass to pass, got a second one "
                        "that began within it: use two loaders, or persistent_workers=False"
                    )
        finally:  # a pass that is broken off counts too; one that set_epoch overtook has nothing to count
            if self.epoch == epoch:
                self.epoch = epoch + 1

    def __len__(self) -> int:
        return len(self.batches()) if self.max_rows is not None else self._count()

    def _count(self) -> int:
        whole, rest = divmod(len(self.graphs), self.batch_size)
        return whole + (1 if rest and not self.drop_last else 0)
