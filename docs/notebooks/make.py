"""Notebooks of the first pages, written from the pages themselves: ``python docs/notebooks/make.py``.

A block of Python that the tests run is a code cell; everything else is text. Nothing is executed here.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PAGES = ("start", "porting", "own_models", "own_graphs")
DOCS = Path(__file__).resolve().parent.parent
BLOCK = re.compile(r"^(?:<!-- ((?:not run|needs)[^\n]*?) -->\n)?```(\w*)([^\n]*)\n(.*?)^```\n?", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True)
class Block:
    """One code block of a page: its language, and why it is not run (or what it needs), where that is said."""

    language: str
    code: str
    mark: str
    start: int
    end: int

    @property
    def runs(self) -> bool:
        return self.language == "python" and not self.mark


def blocks(text: str) -> list[Block]:
    return [Block(m[2], m[4], m[1] or "", m.start(), m.end()) for m in BLOCK.finditer(text)]


def _text(markdown: str) -> str:
    """Without what only the site shows; links as seen from this folder."""
    markdown = re.sub(r"</?div[^>]*>\n?|<!--.*?-->\n?|^\[As a notebook\].*\n+", "", markdown, flags=re.MULTILINE)
    return re.sub(r"\]\((?!http|#)([^)\s]+)\)", r"](../\1)", markdown).strip()


def cells(page: str) -> list[tuple[str, str]]:
    """("code" or "markdown", text) in order."""
    found, at = [], 0
    for block in blocks(page):
        if block.runs:
            found += [("markdown", _text(page[at : block.start])), ("code", block.code.strip())]
            at = block.end
    return [(kind, text) for kind, text in [*found, ("markdown", _text(page[at:]))] if text]


def notebook(page: str) -> str:
    made: list[dict[str, Any]] = []
    for number, (kind, text) in enumerate(cells(page)):
        cell = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}, "source": text.splitlines(keepends=True)}
        made.append(cell | ({"execution_count": None, "outputs": []} if kind == "code" else {}))
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    whole = {"cells": made, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name in PAGES:
        (DOCS / "notebooks" / f"{name}.ipynb").write_text(notebook((DOCS / f"{name}.md").read_text()))
