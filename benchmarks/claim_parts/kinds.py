"""Kinds of entries: a sentence with numbers of a result file, a page or part made of such files, and what is no measurement."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

__all__ = ["ROOT", "Given", "Made", "Said"]


def _anywhere(text: str) -> str:
    """A pattern that finds a text wherever its lines break."""
    return r"\s+".join(re.escape(word) for word in text.split())


@dataclass(frozen=True)
class Said:
    """A sentence: ``says`` with ``numbers`` of the file in its braces stands on the page as it is."""

    page: str
    says: str
    command: str
    file: str
    numbers: Callable[[Any], Sequence[str]]

    def text(self) -> str:
        path = ROOT / self.file
        return self.says.format(*self.numbers(json.loads(path.read_text()) if path.suffix == ".json" else path.read_text()))

    def pattern(self) -> str:
        return _anywhere(self.text())


@dataclass(frozen=True)
class Made:
    """A page, or what is between ``begin`` and ``end`` on it, as ``command`` writes it; ``test`` makes it again."""

    page: str
    what: str
    command: str
    files: tuple[str, ...]
    test: str
    begin: str = ""
    end: str = ""

    def pattern(self) -> str:
        return re.escape(self.begin) + r"[\s\S]*?" + re.escape(self.end) if self.begin else r"[\s\S]+"


@dataclass(frozen=True)
class Given:
    """Numbers that nobody measures here: limits, which ``file`` holds, titles, sizes, and what others report."""

    pages: tuple[str, ...]
    says: str
    why: str
    file: str = ""
    holds: str = ""

    def pattern(self) -> str:
        return _anywhere(self.says)
