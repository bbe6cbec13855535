"""Files of records: a line of JSON each, or a row of Parquet."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from enfa.datasets.known import JSON, PARQUET

__all__ = ["record_rows"]


def record_rows(path: Path) -> Iterator[tuple[int, str, Any]]:
    """For each record its line (or row, from 1), how it begins, and itself: a ValueError where it cannot be read."""
    if path.suffix.lower() in JSON:
        return _json_lines(path)
    if path.suffix.lower() in PARQUET:
        return _parquet_rows(path)
    raise ValueError(f"Expected a file ending in {', '.join(JSON + PARQUET)}, got {path}")


def _json_lines(path: Path) -> Iterator[tuple[int, str, Any]]:
    with path.open("rb") as file:
        for line, text in enumerate(file, 1):
            if text.strip():
                shown = text.decode("utf-8", "replace").strip()[:60]
                try:
                    record = json.loads(text)
                except ValueError as error:
                    record = ValueError(f"no JSON ({error})")  # told with the other mistakes
                yield line, shown, record


def _parquet_rows(path: Path) -> Iterator[tuple[int, str, Any]]:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError("Reading Parquet files needs pyarrow: pip install 'enfa[parquet]'") from error
    try:
        row = 0
        for batch in parquet.ParquetFile(path).iter_batches():
            for record in batch.to_pylist():
                row += 1
                yield row, str(record)[:60], record
    except (OSError, ValueError) as error:  # pyarrow's own are of these
        raise ValueError(f"{path}: Expected a Parquet file, got another ({error})") from error
