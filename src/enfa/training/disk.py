"""Files that appear complete or not at all."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from enfa.atomic import write_atomically

__all__ = ["write_csv", "write_json", "write_text"]


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, [text.encode()])


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> None:
    """One line per row, the columns those of the first row."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n", delimiter=delimiter)
    table.writeheader()
    table.writerows(rows)
    write_text(path, text.getvalue())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1) + "\n")
