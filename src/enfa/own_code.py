"""Models, convs and policies in Python files of the user's own, for configs and commands to name.

Reading such a file runs it. So it is the user who names it, by ``--code FILE`` or in ``ENFA_CODE``, where the processes that a
command starts find it, too. No config and no checkpoint can, because they may come from others.
"""

from __future__ import annotations

import ast
import hashlib
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import cache
from importlib import import_module
from inspect import isclass, isfunction, ismodule
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from enfa.graphs.names import VARIABLE, check_named

__all__ = ["code_of", "found", "name_code", "own", "place", "tell_changed"]


class _Code(NamedTuple):
    defined: dict[str, Any]
    fingerprints: dict[str, str]  # of what was read, which the files may no longer hold: it, and what lies beside it


def name_code(files: Iterable[str | Path]) -> None:
    """From now on, in this process and in those that it starts, what these files define can be named."""
    named = [str(Path(file).absolute()) for file in files]
    for file in named:
        if os.pathsep in file:
            raise ValueError(
                f"Expected a file for --code without {os.pathsep!r} in its path, which divides several, got {file}"
            )
    os.environ[VARIABLE] = os.pathsep.join(named)
    for path in _files():
        _read(path)  # mistakes show now


def _files() -> list[Path]:
    """Each of them once, however often and in whichever way it is named."""
    given = [Path(text) for text in os.environ.get(VARIABLE, "").split(os.pathsep) if text]
    return list(dict.fromkeys(file.parent.resolve() / file.name for file in given))


@cache
def _read(file: Path) -> _Code:
    """The classes and functions that a file defines, or what its ``__all__`` names. It becomes a module of its own name, so
    that objects out of it can be sent to other processes."""
    if not file.exists():
        raise ValueError(f"There is no file {file}, which --code names")
    if not file.is_file() or file.suffix != ".py":
        raise ValueError(f"Expected a Python file (.py) for --code, got {file}")
    if "." in file.stem:  # a module of that name would be part of a package
        raise ValueError(f"Expected a file for --code whose name has no dot but that of .py, got {file}: rename it")
    if str(file.parent) not in sys.path:
        sys.path.append(str(file.parent))
    fingerprints = _fingerprints(file, {})
    try:
        module = import_module(file.stem)
    except (Exception, SystemExit) as error:  # of whatever kind: it is the user's code that runs
        said = error.msg if isinstance(error, SyntaxError) else error  # which names the line again
        raise ValueError(f"{file}{_line(file, error)}: {type(error).__name__}: {said}") from error
    _check_alone(module, file)
    for name in {_top(value) for value in vars(module).values()} & sys.modules.keys():  # what lies beside it, and it imports
        if (beside := file.with_name(f"{name}.py")).is_file():
            _check_alone(sys.modules[name], beside)
    names = getattr(module, "__all__", None)
    if names is None:
        made = {name: value for name, value in vars(module).items() if isclass(value) or isfunction(value)}
        names = [name for name, value in made.items() if value.__module__ == module.__name__]
    lacking = [name for name in names if not hasattr(module, name)]
    if lacking:
        raise ValueError(f"{file}: Expected what __all__ names, got no {lacking[0]!r}")
    return _Code({name: getattr(module, name) for name in names}, fingerprints)


def _fingerprints(file: Path, found: dict[str, str]) -> dict[str, str]:
    """Of a file and of the files in its folder that it imports, and these import, wherever in them: by their names."""
    text = file.read_bytes()
    found[file.name] = hashlib.sha256(text).hexdigest()
    with suppress(SyntaxError, ValueError):  # which is told when it is imported
        for part in ast.walk(ast.parse(text)):
            names = [alias.name for alias in part.names] if isinstance(part, ast.Import) else []
            names += [part.module] if isinstance(part, ast.ImportFrom) and part.module else []
            for beside in (file.with_name(f"{name}.py") for name in names):
                if beside.name not in found and beside.is_file():
                    _fingerprints(beside, found)
    return found


def _line(file: Path, error: BaseException) -> str:
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


def _top(value: Any) -> str:
    """The module, or the package, that something is, or comes from."""
    return str(getattr(value, "__name__" if ismodule(value) else "__module__", "")).partition(".")[0]


def _check_alone(module: ModuleType, file: Path) -> None:
    there = getattr(module, "__file__", None)
    if there is None or not os.path.samefile(there, file):
        other = there or "a module of Python's"
        raise ValueError(f"{file}: Expected a file whose name no other module has, got that of {other}: rename it")


def own(wanted: Callable[[Any], bool]) -> dict[str, Any]:
    """What is wanted of all that the user's files define, by its name."""
    return {name: value for file in _files() for name, value in _read(file).defined.items() if wanted(value)}


def found(what: str, name: object, ours: Collection[str], wanted: Callable[[Any], bool]) -> Any:
    """What the user's files call so; None where it is one of the package's names. A name of two things is refused, so that
    neither is taken for the other."""
    mine = own(wanted)
    check_named(what, name, [*ours, *mine])
    places = ["the package"] * (name in ours) + [str(file) for file in _files() if wanted(_read(file).defined.get(str(name)))]
    if len(places) > 1:
        raise ValueError(f"Expected {what} {name!r} in one place, got it in {' and in '.join(places)}: rename one of yours")
    return None if name in ours else mine[str(name)]


def code_of(names: Iterable[object]) -> dict[str, str]:
    """Fingerprints of those of the user's files that define some of these names, and of what they import of their folders, by
    what the files are called."""
    wanted, found = {name for name in names if isinstance(name, str)}, dict[str, str]()
    for code in map(_read, _files()):
        if wanted & code.defined.keys():
            found |= code.fingerprints
    return found


def tell_changed(where: Path, there: Any, here: dict[str, str]) -> None:
    """Warn, and no more: a comment may have changed, or what the model computes, and which it is cannot be told here.

    ``there``, ``here``: fingerprints, by the names of files, of when ``where`` was written and of now.
    """
    there = there if isinstance(there, dict) else {}
    # of a file that was not known there nothing can be told, unless none of them was: then it has another name now
    named = here.keys() & there.keys() or here.keys()
    changed = sorted(name for name in named if here[name] not in there.values())
    if changed:
        _warn(f"{', '.join(changed)} has changed since {where} was written, and may compute something else now")


@cache
def _warn(line: str) -> None:
    """Once in a process, however many runs it reads."""
    warnings.warn(line, stacklevel=2)
