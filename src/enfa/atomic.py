"""Writing a file all at once: the old one, or the whole new one.

The bytes go to a temporary file beside the target, which is flushed to the disk and renamed. A writer that was killed leaves
such a ``.partial`` file, which nothing reads; the next one that writes to the same target removes it. A writer holds a
lock on its file, which ends with its process however that ends, so that a file in writing is never taken for a left-over.
"""

import errno
import os
import re
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # a system without such locks: left-overs stay
    fcntl = None  # type: ignore[assignment]

__all__ = ["alone_in", "check_writable", "named", "write_atomically"]


def named(error: OSError, path: Path) -> OSError:
    """The same error, with the file that it is about."""
    return error if error.errno is None else OSError(error.errno, error.strerror, str(path))


def check_writable(path: Path) -> None:
    """Make the folder of a file that is to be written, and refuse one that cannot be written into."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path.parent))


def _lock(file: IO[bytes], wait: bool = False) -> bool:
    """Whether we hold the file's lock now; not where another process does, or where there is none to hold."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _remove_leftovers(target: Path) -> None:
    """Temporary files of writers to ``target`` that are no longer there."""
    name = re.compile(re.escape(target.name) + r"\.[0-9a-f]{12}\.partial")
    for path in target.parent.iterdir():
        if not name.fullmatch(path.name):
            continue
        try:
            with path.open("rb") as file:
                if _lock(file):
                    path.unlink()
        except OSError:  # another process removes it, or has just renamed it
            continue


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Wait until no other process is in here with this folder: to read a file, and write it with something added.

    The lock is the folder's own, so no file is left behind, and it ends with its process. Where a system or a network disk has
    no such locks, nobody waits.
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


def write_atomically(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write ``parts`` to a file; what stood there before stays until all is on the disk."""
    _remove_leftovers(path)
    while True:
        partial = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}.partial")  # two writers do not meet
        try:
            with partial.open("xb") as file:
                _lock(file, wait=True)  # only one that removes left-overs may hold it, for a moment
                if not partial.exists():  # and did
                    continue
                for part in parts:
                    file.write(part)
                file.flush()
                os.fsync(file.fileno())
                if fcntl is not None:  # renamed before the lock ends
                    os.replace(partial, path)
                    return
            os.replace(partial, path)
            return
        except OSError as error:  # a full disk, say: writing does not know the name of what it writes
            partial.unlink(missing_ok=True)
            raise named(error, path) from error
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
