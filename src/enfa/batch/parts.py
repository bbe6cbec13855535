"""Batches of subgraphs, each with a label of its own: the nodes or pairs of one large graph."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from enfa.batch.batches import Batches
from enfa.batch.dataset import CompiledDataset
from enfa.batch.sent import Sending, received
from enfa.plan.derived.prepare import Needs, prepare
from enfa.plan.table import Plan

__all__ = ["SubgraphLoader"]


class _Plans(torch.utils.data.Dataset):
    """(Epoch, number of the batch in it, subgraphs) -> plan. Runs in the worker processes."""

    def __init__(self, compiled: CompiledDataset, labels: Tensor, needs: Needs | None) -> None:
        self.compiled, self.labels, self.needs = compiled, labels, needs

    def __getitem__(self, batch: tuple[int, int, np.ndarray]) -> Plan:
        subs = np.sort(batch[2])
        plan = self.compiled.part(subs)
        plan.y = self.labels.index_select(0, torch.from_numpy(subs))
        return plan if self.needs is None else prepare(plan, self.needs)


class SubgraphLoader(torch.utils.data.DataLoader):
    """Yields plans of some of the compiled subgraphs, with their labels as ``y``.

    For models whose rows read no other subgraph (``readout="root"``): then a batch computes for each of them what the whole
    bag does.

    Args:
        labels: [subgraphs, ...], of all compiled subgraphs.
        subgraphs: which of them.
        batch_size: subgraphs per batch.
        shuffle: a new order each epoch, a function of (seed, epoch), as of :class:`~enfa.DataLoader`.
        needs: as there.
    """

    def __init__(
        self, compiled: CompiledDataset, labels: Tensor, subgraphs: np.ndarray, batch_size: int, shuffle: bool = False,
        seed: int = 0, num_workers: int = 0, needs: Needs | None = None,
    ) -> None:  # fmt: skip
        if len(labels) != compiled.num_subgraphs:
            raise ValueError(f"Expected a label for each of {compiled.num_subgraphs} subgraphs, got {len(labels)}")
        size = compiled.sub_size if compiled.program.counted else None
        single = None if size is None else lambda sub: bool(size[sub] == 1)
        chosen = np.asarray(subgraphs, np.int64)
        self.sampled = Batches(chosen, batch_size, shuffle, seed, single=single)
        super().__init__(
            _Plans(compiled, labels, needs), batch_size=None, sampler=self.sampled, num_workers=num_workers,
            persistent_workers=num_workers > 0, generator=torch.Generator().manual_seed(seed), collate_fn=Sending(),
        )  # fmt: skip

    def __iter__(self) -> Iterator[Plan]:  # type: ignore[override]
        return self.sampled.one_pass(lambda: received(super(SubgraphLoader, self).__iter__()), self.persistent_workers)
