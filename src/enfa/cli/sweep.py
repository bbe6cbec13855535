"""``enfa sweep``: folds and seeds of one or more configs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.cli.settings import config_of
from enfa.training.record import Record
from enfa.training.run import needs_lightning
from enfa.training.sweep import Job, plan_jobs
from enfa.training.sweep import sweep as run_all
from enfa.training.table import terminal_table

__all__ = ["numbers", "sweep"]


def numbers(text: str) -> list[int]:
    """
    >>> numbers("0-3,7")
    [0, 1, 2, 3, 7]
    """
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and not last.isdigit()):
            raise ValueError(f"Expected numbers such as 0-9 or 0,2,5, got {text!r}")
        found += range(int(first), int(last or first) + 1)
    return list(dict.fromkeys(found))


def sweep(
    configs: Annotated[
        list[str],
        typer.Argument(metavar="CONFIG... [KEY=VALUE]...", help="YAML files, and settings that replace theirs."),
    ],
    folds: Annotated[str | None, typer.Option(help="Which folds, such as 0-9.", show_default="all")] = None,
    seeds: Annotated[str, typer.Option(help="Which seeds, such as 0-4.")] = "0",
    jobs: Annotated[int, typer.Option(min=1, help="Runs at a time, one CPU thread each.")] = 1,
    results: Annotated[Path, typer.Option(help="Folder of the result files, one JSON per config.")] = Path("results"),
    minutes: Annotated[
        float | None, typer.Option(help="Stop all runs after the epoch in which this time is up.", show_default="none")
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show progress bars (with --jobs 1).")] = True,
) -> None:
    """Train every fold with every seed, and print mean and standard deviation. Runs whose results are filed are not
    repeated; interrupted ones go on from their last checkpoint."""
    console = Console()
    deadline = None if minutes is None else time.monotonic() + 60 * minutes
    files = [text for text in configs if "=" not in text]
    overrides = [text for text in configs if "=" in text]
    if not files:
        raise ValueError("Expected at least one config file, got none")
    needs_lightning()
    made = [config_of(Path(file), overrides) for file in files]
    todo, every = plan_jobs(made, None if folds is None else numbers(folds), numbers(seeds), results)
    console.print(f"{len(todo)} runs to do, {sum(len(of.records) for of in every)} on file")
    failed: list[Job] = []

    def report(job: Job, record: Record | None, error: BaseException | None) -> None:
        if error is not None:
            failed.append(job)
            line = f"failed: {' '.join(str(error).split()) or type(error).__name__}"
        elif record is None:
            line = "no time to begin"
        else:
            line = f"{record.ended} after {record.epochs} epochs, {record.seconds:.0f} s; best {record.valid:.4f}"
            line += "" if record.test is None else f", test {record.test:.4f}"
        console.print(f"{job}: {line}", markup=False, soft_wrap=True)

    try:
        run_all(todo, min(jobs, max(len(todo), 1)), deadline, report, progress)
    except (KeyboardInterrupt, SystemExit):
        console.print("Interrupted: the same command continues.")
        raise typer.Exit(130) from None
    console.print(terminal_table(every))
    if failed:
        raise typer.Exit(1)
