"""``enfa table``: docs/results.md out of the result files."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.training.disk import write_text
from enfa.training.results.table import markdown, read_results, terminal_table

__all__ = ["table"]


def table(
    results: Annotated[Path, typer.Argument(help="Folder of result files.")] = Path("results"),
    out: Annotated[Path | None, typer.Option(help="Write the table there, as Markdown.", show_default="no file")] = None,
) -> None:
    """Print all results beside the paper's numbers."""
    found = read_results(results)
    if not found:
        raise ValueError(f"Expected at least one result file in {results}, got none")
    Console().print(terminal_table(found))
    if out is not None:
        write_text(out, markdown(found))
