"""Files that appear complete or not at all."""

import csv
import io
import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from enfa.batch.file.atomic import named

__all__ = ["write_csv", "write_json", "write_text"]


def write_text(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    except OSError as error:  # a folder that may not be written
        raise named(error, path) from error
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
        os.chmod(scratch, 0o644)
        os.replace(scratch, path)
    except OSError as error:  # a full disk, say: writing does not know the name of what it writes
        os.unlink(scratch)
        raise named(error, path) from error
    except BaseException:
        os.unlink(scratch)
        raise


def write_csv(path: Path, rows: Sequence[Mapping[str, Any]], delimiter: str = ",") -> None:
    """One line per row, the columns those of the first row."""
    text = io.StringIO()
    table = csv.DictWriter(text, list(rows[0]) if rows else [], lineterminator="\n", delimiter=delimiter)
    table.writeheader()
    table.writerows(rows)
    write_text(path, text.getvalue())


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=1) + "\n")
