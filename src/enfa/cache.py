"""Where compiled kernels are kept from one run to the next: one folder, ``ENFA_CACHE``.

By default it is ``enfa`` in the user's folder of caches (``XDG_CACHE_HOME``, ``~/.cache``, or ``LOCALAPPDATA``). Below it
are ``numba-VERSION``, what builds plans, and ``triton``, what runs models on GPUs. ``NUMBA_CACHE_DIR`` and
``TRITON_CACHE_DIR``, where they are set, are used instead. What the user compiles with either is kept where it would be
without us, and so are our kernels where the folder cannot be written. Nothing here needs PyTorch.
"""

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

__all__ = [
    "cache_folder", "compiled_kernels", "kernel_folders", "numba_folder", "numba_kernel", "triton_folder", "triton_in_folder",
]  # fmt: skip


def cache_folder() -> Path:
    """The one folder."""
    given = os.environ.get("ENFA_CACHE")
    if given:
        return Path(given).expanduser()
    if os.name == "nt":
        base = os.environ.get("LOCALAPPDATA")
    else:
        base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path("~/.cache").expanduser()) / "enfa"


@cache
def _writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _below(name: str, instead: str) -> Path | None:
    """A folder for kernels; None where the user has chosen another or it cannot be written."""
    folder = cache_folder() / name
    return None if os.environ.get(instead) or not _writable(folder) else folder


def numba_folder() -> Path | None:
    """One for each version: two at once would read what the other one has just written in the place of its own."""
    return _below(f"numba-{_numba()}", "NUMBA_CACHE_DIR")


@cache
def _numba() -> str:
    try:
        return version("numba")  # which need not be imported for it
    except PackageNotFoundError:  # in a frozen application
        import numba

        return numba.__version__


def triton_folder() -> Path | None:
    return _below("triton", "TRITON_CACHE_DIR")


def kernel_folders() -> dict[str, Path]:
    """Where kernels are kept, by what compiles them, also where that is not our folder."""
    return {
        "numba": numba_folder() or Path(os.environ.get("NUMBA_CACHE_DIR") or Path(__file__).parent),
        "triton": triton_folder() or Path(os.environ.get("TRITON_CACHE_DIR") or Path("~/.triton").expanduser()),
    }


def compiled_kernels() -> dict[str, int]:
    """How many kernels are kept, by what has compiled them, wherever that is."""
    patterns = {"numba": "*.nbc", "triton": "__grp__*"}
    return {name: sum(1 for _ in folder.rglob(patterns[name])) for name, folder in kernel_folders().items()}


def numba_kernel(function: Callable | None = None, **options: Any) -> Any:
    """``numba.njit(cache=True, nogil=True)`` whose machine code is kept in our folder."""
    if function is None:
        return partial(numba_kernel, **options)
    from numba import config, njit

    folder = numba_folder()
    if folder is None:
        return njit(cache=True, **{"nogil": True, **options})(function)
    before = config.CACHE_DIR  # which a function reads when it is decorated
    config.CACHE_DIR = str(folder)
    try:
        return njit(cache=True, **{"nogil": True, **options})(function)
    finally:
        config.CACHE_DIR = before


@contextmanager
def triton_in_folder() -> Iterator[None]:
    """In here Triton looks for kernels in our folder, and writes there what it compiles."""
    folder = triton_folder()
    if folder is None:
        yield
        return
    os.environ["TRITON_CACHE_DIR"] = str(folder)
    try:
        yield
    finally:
        del os.environ["TRITON_CACHE_DIR"]
