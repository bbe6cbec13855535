"""Models, convs and policies in Python files of the user's own, for configs and commands to name.

Reading such a file runs it. So it is the user who names it, by ``--code FILE`` or in ``ENFA_CODE``, where the processes that a
command starts find it, too. No config and no checkpoint can, because they may come from others.
"""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
from collections.abc import Callable, Collection, Iterable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from enfa.graphs.names import VARIABLE, check_named

__all__ = ["code_of", "found", "name_code", "own", "place"]


def name_code(files: Iterable[str | Path]) -> None:
    """From now on, in this process and in those that it starts, what these files define can be named."""
    os.environ[VARIABLE] = os.pathsep.join(str(Path(file).absolute()) for file in files)
    for file in _files():
        _read(file)  # mistakes show now


def _files() -> list[Path]:
    return [Path(text).absolute() for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]


@cache
def _read(file: Path) -> dict[str, Any]:
    """What a file defines, or what its ``__all__`` names. It becomes a module of its own name, so that objects out of it can
    be sent to other processes."""
    if not file.exists():
        raise ValueError(f"There is no file {file}, which --code names")
    if not file.is_file() or file.suffix != ".py":
        raise ValueError(f"Expected a Python file (.py) for --code, got {file}")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    try:
        module = import_module(file.stem)
    except Exception as error:  # of whatever kind: it is the user's code that runs
        said = error.msg if isinstance(error, SyntaxError) else error  # which names the line again
        raise ValueError(f"{file}{_line(file, error)}: {type(error).__name__}: {said}") from error
    _check_alone(module, file)
    names = getattr(module, "__all__", None)
    if names is None:
        names = [name for name, value in vars(module).items() if getattr(value, "__module__", None) == module.__name__]
    lacking = [name for name in names if not hasattr(module, name)]
    if lacking:
        raise ValueError(f"{file}: Expected what __all__ names, got no {lacking[0]!r}")
    return {name: getattr(module, name) for name in names}


def _line(file: Path, error: Exception) -> str:
    """Where in the file."""
    if isinstance(error, SyntaxError):
        return f", line {error.lineno}" if error.filename == str(file) else ""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(file)]
    return f", line {lines[-1]}" if lines else ""


def place(error: BaseException) -> str | None:
    """The innermost line of the user's files that an error came through; None where it came through none."""
    files = set(map(str, _files()))
    frames = [(frame.filename, frame.lineno) for frame in traceback.extract_tb(error.__traceback__)]
    if type(error.__cause__).__name__ == "_RemoteTraceback":  # of another process, which executors send as text
        frames += [(found[1], int(found[2])) for found in re.finditer(r'File "(.+)", line (\d+)', str(error.__cause__))]
    lines = [f"{file}, line {line}" for file, line in frames if file in files]
    return lines[-1] if lines else None


def _check_alone(module: ModuleType, file: Path) -> None:
    there = getattr(module, "__file__", None)
    if there is None or not os.path.samefile(there, file):
        other = there or "a module of Python's"
        raise ValueError(f"{file}: Expected a file whose name no other module has, got that of {other}: rename it")


def own(wanted: Callable[[Any], bool]) -> dict[str, Any]:
    """What is wanted of all that the user's files define, by its name."""
    mine: dict[str, Any] = {}
    for file in _files():
        for name, value in _read(file).items():
            if wanted(value):
                if name in mine:
                    raise ValueError(f"Expected {name!r} in one of the files of --code, got it in {file} and in another")
                mine[name] = value
    return mine


def found(what: str, name: object, ours: Collection[str], wanted: Callable[[Any], bool]) -> Any:
    """What the user's files call so; None where it is one of the package's names. A name of both is refused, so that neither
    is taken for the other."""
    mine = own(wanted)
    if name in ours and name in mine:
        raise ValueError(f"Expected {what} {name!r} from the package or from a file of --code, got it in both: rename yours")
    check_named(what, name, [*ours, *mine])
    return None if name in ours else mine[str(name)]


def code_of(names: Iterable[object]) -> dict[str, str]:
    """Fingerprints of those of the user's files that define some of these names, by what the files are called."""
    wanted = {name for name in names if isinstance(name, str)}
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in _files() if wanted & _read(file).keys()}
