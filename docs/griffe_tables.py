"""Tables of docstrings, as reStructuredText has them, for the site: lines of ``=``, and columns that begin where these do."""

from __future__ import annotations

import re
from typing import Any

import griffe

RULE = re.compile(r"^=+(?: +=+)+$")


def with_markdown_tables(text: str) -> str:
    """
    >>> print(with_markdown_tables("== ==\\na  b\\n   c\\n== =="))
    |  |  |
    |---|---|
    | a | b c |
    """
    lines: list[str] = []
    rows: list[list[str]] | None = None  # of the table that is open
    starts: list[int] = []
    for line in text.split("\n"):
        if RULE.match(line):
            if rows is None:
                rows, starts = [], [match.start() for match in re.finditer("=+", line)]
            else:
                empty = " | ".join("" for _ in starts)
                lines += [f"| {empty} |", "|" + "---|" * len(starts), *(f"| {' | '.join(row)} |" for row in rows)]
                rows = None
        elif rows is None:
            lines.append(line)
        else:
            cells = [line[a:b].strip() for a, b in zip(starts, [*starts[1:], None])]
            if cells[0] or not rows:
                rows.append(cells)
            else:  # goes on with the row before
                rows[-1] = [f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells)]
    return "\n".join(lines)


class Tables(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "===" in obj.docstring.value:
            obj.docstring.value = with_markdown_tables(obj.docstring.value)
