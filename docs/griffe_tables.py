"""What the site makes of the source: tables of docstrings, as reStructuredText has them (lines of ``=``, and columns that begin
where these do), their examples as code, and settings of a config by their defaults."""

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


def with_fenced_examples(text: str) -> str:
    """Sessions of an interpreter as code; in Markdown their lines would be quotations.

    >>> with_fenced_examples("So:\\n>>> 1 + 1\\n2").splitlines()
    ['So:', '', '```pycon', '>>> 1 + 1', '2', '```']
    """
    lines: list[str] = []
    inside = False
    for line in [*text.split("\n"), ""]:
        if not inside and line.lstrip().startswith(">>> "):
            indent = line[: len(line) - len(line.lstrip())]
            lines += [*([""] if lines and lines[-1] else []), f"{indent}```pycon"]
            inside = True
        elif inside and not line.strip():
            lines.append(f"{indent}```")
            inside = False
        lines.append(line)
    return "\n".join(lines[:-1])


class Tables(griffe.Extension):
    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None and "===" in obj.docstring.value:
            obj.docstring.value = with_markdown_tables(obj.docstring.value)
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = with_fenced_examples(obj.docstring.value)
        call = getattr(obj, "value", None)
        if isinstance(call, griffe.ExprCall) and str(call.function) == "_setting":
            # _setting(meaning, default): a reader of the signature wants the default; enfa train --help has the meanings
            obj.value = call.arguments[1] if len(call.arguments) > 1 else None  # type: ignore[attr-defined]
