"""Files that one process at a time holds, so that two which would write to the same place know of each other.

The lock ends with its process, however that ends. It is one of POSIX: those that a process forks do not hold it, too, and a
worker that outlives its run keeps nobody out.
"""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # a system without such locks: that the file is there says it
    fcntl = None  # type: ignore[assignment]

__all__ = ["holding"]

PATIENCE = 10.0  # seconds; without locks, a file that is as old as that was left by a process that was killed


def _taken(path: Path, wait: bool) -> IO[bytes] | None:
    """The file, which is ours now; None where another process has it."""
    while True:
        file = path.open("ab")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        except OSError:  # a file system without locks: as if nobody else was there
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # whoever had it has removed it


def _made(path: Path, wait: bool) -> IO[bytes] | None:
    """The same without locks."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            return path.open("xb")
        except FileExistsError:
            if not wait:
                return None
            if time.monotonic() > until:
                path.unlink(missing_ok=True)
            time.sleep(0.02)


@contextmanager
def holding(path: Path, wait: bool = True) -> Iterator[bool]:
    """Hold a file that is there for this alone, and holds the number of our process; it is removed in the end.

    Where another process holds it, wait for that; or, with ``wait=False``, go on at once with False.
    """
    file = (_made if fcntl is None else _taken)(path, wait)
    if file is None:
        yield False
        return
    try:
        file.truncate(0)
        file.write(str(os.getpid()).encode())
        file.flush()
        yield True
    finally:
        if fcntl is None:
            file.close()  # before it can be removed
        with suppress(OSError):
            path.unlink()
        file.close()
