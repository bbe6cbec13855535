"""A compiled dataset in many files, of which a few are in memory at a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch.batches import Batches
from enfa.batch.dataset import CompiledDataset
from enfa.batch.positions import positions
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import Manifest
from enfa.batch.shards.reading.cache import Shards, memory_of
from enfa.batch.shards.reading.opened import Opened, Reader
from enfa.batch.shards.reading.order import Windows
from enfa.edits import Policy, Subsample
from enfa.graphs.numbers import bytes_of
from enfa.plan.cutting.cut import Cutter
from enfa.plan.table import Plan

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Compiled", "ShardedDataset"]

# Of the memory given, a window may have a quarter: it is there with what slicing keeps beside it, half as much, while the next
# one is made ready, which takes the same, and shards that single graphs were taken from are kept in another quarter.
_WINDOW, _SLICING = 1 / 4, 1.5
_SHARD = 4  # so the largest shard must fit four times


class ShardedDataset:
    """What ``enfa.compile(..., out=folder)`` wrote, read as it is needed. ``sharded[[3, 5]]`` is the plan of graphs 3 and 5.

    It is used as an :class:`enfa.CompiledDataset`: by loaders, which read the shards window by window
    (:mod:`enfa.batch.shards.reading.order`) and the next one ahead, or graph by graph, which is slower: shards are read for
    each batch that is not in the window. Graphs of several shards may be in one batch; rows are shared within each shard.
    """

    plan_class: type[Plan] = Plan

    def __init__(self, folder: Folder, manifest: Manifest, memory: int, policy: Policy | None = None) -> None:
        self.folder, self.manifest, self.memory = folder, manifest, memory
        self.key, self.program = manifest.key, manifest.program
        counts = np.array([shard.graphs for shard in manifest.shards])
        self.shards = Shards(folder, manifest, self.plan_class, policy, int(memory * _WINDOW))
        first = self.shards.get(0)
        self.policy = first.policy
        # what a row takes in memory, it takes in the first shard
        rows = np.array([sum(shard.rows) + shard.nodes + shard.subgraphs for shard in manifest.shards])
        size = rows * (memory_of(first) / rows[0])
        if size.max() * _SHARD > memory:
            raise ValueError(
                f"Expected memory for {_SHARD} times the largest shard, {_SHARD * size.max() / 2**30:.2f} GiB, got "
                f"{memory / 2**30:.2f} GiB: give more, or compile into smaller shards"
            )
        ptr, every = np.concatenate([[0], np.cumsum(counts)]), float(size.sum())
        self.whole = every * _SLICING <= memory * (1 - _WINDOW)  # then nothing is read a second time
        room = every if self.whole else memory * _WINDOW
        self.windows = Windows(ptr, size / counts, room)
        self.reader = Reader(self.shards, self.windows)
        self._y: Tensor | None = None
        self._rows: np.ndarray | None = None

    @classmethod
    def open(cls, folder: str | Path, memory: int | str = "2 GiB", policy: Policy | None = None) -> Self:
        """Open a folder, or a URL that fsspec knows, with a manifest.

        Args:
            memory: for shards, at most, in each process that makes batches; beside what PyTorch and batches take.
            policy: one's own, to ``extend``; those of this package are known by name.
        """
        where = Folder(folder)
        return cls(where, Manifest.read(where), bytes_of(memory), policy)

    @property
    def kind(self) -> str:
        return self.key["kind"]

    def __len__(self) -> int:
        return int(self.windows.ptr[-1])

    @property
    def num_subgraphs(self) -> int:
        return sum(shard.subgraphs for shard in self.manifest.shards)

    @property
    def num_pairs(self) -> int:
        return sum(shard.pairs for shard in self.manifest.shards)

    @property
    def y(self) -> Tensor | None:
        """The labels of all graphs. Read once, from all shards."""
        if self._y is None and self.manifest.labels is not None:
            found = [self.shards.arrays(number, "y")["y"] for number in range(len(self.shards))]
            self._y = torch.from_numpy(np.concatenate(found))
        return self._y

    def single_node(self, graph: int) -> bool:
        """Whether a graph has one node only. Its shard is looked into."""
        number = int(self.windows.shard(np.array([graph]))[0])
        (nodes,) = self.shards.arrays(number, "sources.node_ptr", "graphs.node_ptr").values()  # of whichever plans it has
        place = graph - int(self.windows.ptr[number])
        return int(nodes[place + 1] - nodes[place]) == 1

    def rows_per_graph(self) -> np.ndarray:
        """See :meth:`enfa.CompiledDataset.rows_per_graph`. All shards are read, once."""
        if self._rows is None:
            self._rows = np.concatenate([self.shards.read(n).rows_per_graph() for n in range(len(self.shards))])
        return self._rows

    def positions(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> np.ndarray:
        """See :func:`enfa.batch.positions.positions`."""
        return positions(graphs, len(self))

    def __getitem__(self, graphs: int | Sequence[int] | np.ndarray | Tensor | slice) -> Plan:
        """The plan of some graphs, in the given order. A graph may not occur twice."""
        return self.plan(graphs)

    __getitems__ = CompiledDataset.__getitems__

    def plan(
        self,
        graphs: int | Sequence[int] | np.ndarray | Tensor | slice,
        draw: Subsample | None = None,
        epoch: int = 0,
        score: np.ndarray | None = None,
    ) -> Plan:
        """See :meth:`enfa.CompiledDataset.plan`."""
        if score is not None:
            raise ValueError("Expected no score to draw by from a sharded dataset, got one: compile into one file")
        ids = self.positions(graphs)
        opened = self._having(ids)
        return opened.table.plan(opened.local(ids), draw, epoch, places=ids)

    def _having(self, ids: np.ndarray) -> Opened:
        """A table that has some graphs."""
        if self.whole:
            self.reader.reach("all", np.arange(len(self)))
        return self.reader.having(ids)

    def follow(self, sampled: Batches, epoch: int, number: int) -> None:
        """The batch ``number`` of an epoch is wanted next: its window is opened, and the next one read ahead."""
        if self.whole:
            return
        worker = torch.utils.data.get_worker_info()
        of = (0, 1) if worker is None else (worker.id, worker.num_workers)
        cuts = sampled.cuts(epoch)
        window = int(cuts.window[number])

        def key(window: int) -> tuple[Any, ...]:
            return id(sampled), epoch if sampled.shuffle else 0, window, of

        if self.reader.at(key(window)):
            return
        self.reader.reach(key(window), sampled.in_window(epoch, window, of))
        if window + 1 < len(cuts):
            self.reader.ahead(key(window + 1), sampled.in_window(epoch, window + 1, of))

    def cutter(self, needs: Iterable[tuple[int, str]]) -> Cutter | None:
        """As :meth:`enfa.CompiledDataset.cutter`; None where windows come and go, which takes longer than it saves."""
        return None

    def checked_draw(self, draw: Subsample) -> Subsample:
        return self.shards.get(0).checked_draw(draw)

    def extend(self, graphs: Sequence[Data]) -> np.ndarray:
        """Add graphs, as one more shard that is written beside the others, and return their positions.

        They have the features, labels and attributes that all shards have. Loaders that were made before keep to the others.
        """
        from enfa.batch.shards.extend import with_shard

        first, more = len(self), with_shard(self, graphs)
        self.close()
        self.__init__(self.folder, more, self.memory, self.policy)  # type: ignore[misc]
        return np.arange(first, len(self))

    def first_layers(self, count: int) -> CompiledDataset:
        raise ValueError(
            f"Expected a dataset in one file for a model with {count} layers of those compiled, got shards: compile for it"
        )

    def save(self, path: str | Path) -> None:
        raise ValueError(f"Expected a dataset in one file to save to {path}, got shards, which are stored in {self.folder.url}")

    def close(self) -> None:
        """Give back the memory of shards. What is asked for later is read again."""
        self.reader.close()
        self.shards.clear()

    def __repr__(self) -> str:
        rows = np.sum([shard.rows for shard in self.manifest.shards], 0) if self.manifest.shards[0].rows else []
        return (
            f"{type(self).__name__}({self.kind}, {len(self)} graph{'s' * (len(self) != 1)} in {len(self.shards)} "
            f"shard{'s' * (len(self.shards) != 1)}, {self.num_subgraphs} subgraphs, {self.num_pairs} (subgraph, node) pairs)\n"
            f"  steps: {'; '.join(map(str, self.program.steps))}\n"
            f"  rows:  {' '.join(map(str, rows)) or 'planned batch by batch'}"
        )


Compiled = CompiledDataset | ShardedDataset
