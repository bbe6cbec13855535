"""What one process at a time holds, so that two which would write to the same place know of each other.

Locks end with their process, however that ends.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # a system without such locks
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone_in", "holding"]


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here with this folder: to read a file, and write it with something added.

    The lock is the folder's own, so no file is left behind. Some systems and network disks have no such locks: no wait there.
    """
    if fcntl is None:
        yield
        return
    held = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        yield
    finally:
        os.close(held)


def _taken(path: Path) -> IO[bytes] | None:
    """The open file, locked by this process; None where another process has locked it.

    The lock is one of POSIX, which forked processes do not inherit: a worker that outlives its run does not keep it.
    """
    while True:
        file = path.open("ab")
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):
            file.close()
            return None
        except OSError:  # a file system without locks, on which two processes cannot be told apart
            return file
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()  # the process that had it removed it in the meantime


def _made(path: Path) -> IO[bytes] | None:
    """The same without locks: that the file is there says it."""
    try:
        return path.open("xb")
    except FileExistsError:
        return None


@contextmanager
def holding(path: Path) -> Iterator[bool]:
    """Hold a file that is there for this alone, and holds the number of our process; it is removed in the end.

    Where another process holds it: False.
    """
    file = (_made if fcntl is None else _taken)(path)
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
