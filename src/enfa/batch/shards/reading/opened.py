"""The graphs that batches are being cut out of, in one table; and the ones after them, which a thread reads."""

from __future__ import annotations

import os
import weakref
from concurrent.futures import Future, ThreadPoolExecutor
from threading import RLock
from typing import Any

import numpy as np

from enfa.batch.dataset import CompiledDataset
from enfa.batch.shards.extract import extracted
from enfa.batch.shards.reading.cache import Shards
from enfa.batch.shards.reading.join import joined
from enfa.batch.shards.reading.order import Windows

__all__ = ["Opened", "Reader"]

_READERS: weakref.WeakSet[Reader] = weakref.WeakSet()


class Opened:
    """Some graphs of the dataset, ``ids``, as a compiled dataset."""

    def __init__(self, table: CompiledDataset, ids: np.ndarray) -> None:
        self.table, self.ids = table, ids
        self._order = np.argsort(ids, kind="stable")
        self._sorted = ids[self._order]

    def has(self, ids: np.ndarray) -> np.ndarray:
        """bool: which of some graphs are here."""
        if not len(self.ids):
            return np.zeros(len(ids), bool)
        return self._sorted[np.minimum(np.searchsorted(self._sorted, ids), len(self._sorted) - 1)] == ids

    def local(self, ids: np.ndarray) -> np.ndarray:
        """Their positions here; all must be."""
        return self._order[np.searchsorted(self._sorted, ids)]


class Reader:
    """Opens windows. One is open, and another may be on its way."""

    def __init__(self, shards: Shards, windows: Windows) -> None:
        self.shards, self.windows = shards, windows
        self._key: Any = None
        self._opened: Opened | None = None
        self._ahead: tuple[Any, Future[Opened]] | None = None
        self._thread: ThreadPoolExecutor | None = None
        self._process, self._lock = os.getpid(), RLock()
        _READERS.add(self)

    def open(self, ids: np.ndarray, near: Opened | None = None, keep: bool = False) -> Opened:
        """Some graphs in one table. ``near``: where some of them may be; ``keep``: the shards that others are read from."""
        here = np.zeros(len(ids), bool) if near is None else near.has(ids)
        parts: list[CompiledDataset] = []
        order = [ids[here]]
        if near is not None and here.any():
            parts.append(extracted(near.table, near.local(ids[here])))
        rest = np.sort(ids[~here])
        shard = self.windows.shard(rest)
        for number in np.unique(shard):
            wanted = rest[shard == number]
            found = self.shards.get(int(number)) if keep else self.shards.read(int(number))
            if len(wanted) < len(found):
                found = extracted(found, wanted - self.windows.ptr[number])
            parts.append(found)
            order.append(wanted)
        if not parts:  # no graph at all, as a rank's part of a small batch may have
            parts.append(extracted(self.shards.get(0), ids))
        table = joined(parts, consume=not keep)
        if table.rows is not None and not keep and len(ids):
            # what slicing keeps is made here, by the thread that reads: no one else has this table, so no one need wait for it
            table.slicer.plan(np.zeros(1, np.int64))
        return Opened(table, np.concatenate(order))

    def at(self, key: Any) -> bool:
        """Whether a window is the one that is open."""
        return self._key == key and self._opened is not None

    def reach(self, key: Any, ids: np.ndarray) -> None:
        """Open a window, of these graphs."""
        with self._lock:
            if self.at(key):
                return
            ahead = self._coming()
            self._ahead = None
            if ahead is not None and ahead[0] == key:
                found = ahead[1].result()
            else:
                if ahead is not None:  # another loader's: not wanted now, and its memory is
                    ahead[1].exception()
                if self._opened is not None and not self._opened.has(ids).any():
                    self._key = self._opened = None
                found = self.open(ids, self._opened)
            self._key, self._opened = key, found

    def ahead(self, key: Any, ids: np.ndarray) -> None:
        """Read a window that will be wanted next."""
        with self._lock:
            if self._coming() is None:
                if self._thread is None:
                    self._thread = ThreadPoolExecutor(1, thread_name_prefix="enfa-shards")
                self._ahead = key, self._thread.submit(self.open, ids, self._opened)

    def _coming(self) -> tuple[Any, Future[Opened]] | None:
        """What is being read, in this process: one that was forked has no such thread."""
        if self._process != os.getpid():
            self._process, self._thread, self._ahead = os.getpid(), None, None
        return self._ahead

    def having(self, ids: np.ndarray) -> Opened:
        """The window, where it has all of some graphs; otherwise a table of just these."""
        opened = self._opened
        return opened if opened is not None and opened.has(ids).all() else self.open(ids, keep=True)

    def wait(self) -> None:
        """Until nothing is being read."""
        ahead = self._ahead
        if ahead is not None and self._process == os.getpid():
            ahead[1].exception()

    def close(self) -> None:
        with self._lock:
            self.wait()
            if self._thread is not None and self._process == os.getpid():
                self._thread.shutdown()
            self._key = self._opened = self._ahead = self._thread = None

    def __getstate__(self) -> dict[str, Any]:
        return {"shards": self.shards, "windows": self.windows}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]


def _settle() -> None:
    for reader in list(_READERS):
        reader.wait()


# A process is forked while no thread reads: its copy of what the thread holds would never be given back.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_settle)
