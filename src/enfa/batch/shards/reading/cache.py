"""Shards in memory: read from a folder or a URL, the last ones kept, up to a number of bytes."""

from collections import OrderedDict
from dataclasses import fields
from threading import RLock
from typing import Any

import numpy as np
from torch import Tensor

from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.storage import load_arrays, load_compiled
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import Manifest
from enfa.edits import Policy
from enfa.plan.keys.intern import KeyTable
from enfa.plan.table import Plan

__all__ = ["Shards", "memory_of"]


def _nbytes(value: Any) -> int:
    if isinstance(value, np.ndarray):
        return value.nbytes
    if isinstance(value, Tensor):
        return value.nbytes
    if isinstance(value, KeyTable):
        return value.heads.nbytes + value.items.nbytes + value.hashes.nbytes + value.slots.nbytes
    return 0


def memory_of(compiled: CompiledDataset) -> int:
    """Bytes of all arrays that a compiled dataset holds."""
    held: list[Any] = [compiled.y, *compiled.graph_attr.values()]
    held += [] if compiled.sources is None else compiled.sources.arrays.values()
    for part in (*(compiled.rows or ()), *(compiled.graphs or ())):
        held += [getattr(part, field.name) for field in fields(part)]
    return sum(map(_nbytes, held))


class Shards:
    """The shards of a manifest by number."""

    def __init__(self, folder: Folder, manifest: Manifest, cls: type[Plan], policy: Policy | None, room: int) -> None:
        self.folder, self.manifest, self.cls, self.policy, self.room = folder, manifest, cls, policy, room
        self._kept: OrderedDict[int, tuple[CompiledDataset, int]] = OrderedDict()
        self._lock = RLock()

    def __len__(self) -> int:
        return len(self.manifest.shards)

    def _data(self, number: int) -> bytes:
        shard = self.manifest.shards[number]
        path = self.folder.path(shard.file)
        try:
            data = self.folder.read(shard.file)
        except FileNotFoundError as error:
            raise CorruptFileError(
                f"{path}: missing: expected a file of {shard.bytes} bytes, as the manifest says, got none; compile the same "
                f"graphs into the folder again, and it is made again"
            ) from error
        if len(data) != shard.bytes:
            raise CorruptFileError(f"{path}: damaged: expected {shard.bytes} bytes, as the manifest says, got {len(data)}")
        return data

    def read(self, number: int) -> CompiledDataset:
        """From its file; checked against what was written, and against what the manifest says of it."""
        shard, manifest = self.manifest.shards[number], self.manifest
        path, needs = self.folder.path(shard.file), manifest.program.needs
        expect = manifest.key | {"fingerprint": shard.fingerprint}
        found = load_compiled(
            path, expect=expect, policy=self.policy, cls=self.cls, needs=needs, data=self._data(number)
        )  # fmt: skip
        if len(found) != shard.graphs:
            raise CorruptFileError(f"{path}: damaged: expected {shard.graphs} graphs, as the manifest says, got {len(found)}")
        return found

    def arrays(self, number: int, *names: str) -> dict[str, np.ndarray]:
        """Some arrays of a shard, of which no others are unpacked."""
        return load_arrays(self.folder.path(self.manifest.shards[number].file), self._data(number), names)

    def get(self, number: int) -> CompiledDataset:
        """Kept, if there is room; those that were not asked for longest make it."""
        with self._lock:
            if number in self._kept:
                self._kept.move_to_end(number)
                return self._kept[number][0]
        found = self.read(number)
        size = memory_of(found)
        if size <= self.room:
            with self._lock:
                self._kept[number] = found, size
                self._kept.move_to_end(number)
                while self.held > self.room:
                    self._kept.popitem(last=False)
        return found

    @property
    def held(self) -> int:
        """Bytes of the shards that are kept."""
        with self._lock:
            return sum(size for _, size in self._kept.values())

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_kept": OrderedDict(), "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__ = state | {"_lock": RLock()}
