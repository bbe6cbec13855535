"""``enfa sweep``: folds and seeds of one or more configs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.ahead import begin, ready
from enfa.cli.training.settings import EPILOG, config_of
from enfa.cli.training.telling import outlast_readers
from enfa.training.settings.kernels import groups_of

__all__ = ["EPILOG", "sweep"]


def sweep(
    configs: Annotated[
        list[str],
        typer.Argument(metavar="CONFIG... [KEY=VALUE]...", help="YAML files, and settings that replace theirs."),
    ],
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column to learn; may be given several times.", show_default="the one other column"),
    ] = None,
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
    outlast_readers()
    console = Console()
    files = [text for text in configs if "=" not in text]
    overrides = [text for text in configs if "=" in text]
    if not files:
        raise ValueError("Expected at least one config file, got none")
    if results.exists() and not results.is_dir():
        raise ValueError(f"Expected --results to be a folder, got the file {results}")
    options = {"targets": target} if target else {}
    made = [config_of(Path(file), overrides, **options) for file in files]
    groups = {group for config in made for group in groups_of(config)}
    begin(*groups)
    from enfa.training.results.table import terminal_table  # and PyTorch, which no mistake above had to wait for
    from enfa.training.sweep import numbers, run_sweep

    chosen = None if folds is None else numbers(folds)

    def say(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    ready("rows", *groups)  # the kernels, which several runs would all compile
    try:
        every, failed = run_sweep(made, chosen, numbers(seeds), jobs, results, minutes, say, progress)
    except (KeyboardInterrupt, SystemExit):
        console.print("Interrupted: the same command continues.")
        raise typer.Exit(130) from None
    console.print(terminal_table(every))
    if failed:
        raise typer.Exit(1)
