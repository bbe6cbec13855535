"""``enfa train``: one run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.cli.training.settings import EPILOG, config_of
from enfa.cli.training.telling import Telling
from enfa.training.results.parts import Parts
from enfa.training.settings.folder import LAST, check_place, folder_of

__all__ = ["EPILOG", "train"]


def train(
    config: Annotated[Path, typer.Argument(help="A YAML file of settings.", show_default=False)],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace the file's.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the run's last checkpoint.")] = False,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Train one model. Checkpoints (best.ckpt, last.ckpt) and logs go to OUT/NAME/fold-F-seed-S. Ctrl-C loses at most
    the epoch it falls into; --resume goes on from there, to the same weights as without the break."""
    settings, console = config_of(config, overrides), Console()
    folder = folder_of(settings)
    check_place(settings, resume)
    telling = Telling(Console(stderr=True))
    parts = Parts(telling if progress else None)
    try:
        with parts.timed("import"):
            from enfa.training.run import fit  # and PyTorch, which no mistake above had to wait for
        record = fit(settings, resume=resume, progress=progress, parts=parts)
    except (KeyboardInterrupt, SystemExit):
        kept = f"{folder / LAST} is kept: --resume continues it." if (folder / LAST).exists() else "Nothing was saved yet."
        Console(stderr=True).print(f"Interrupted. {kept}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    finally:
        telling.stop()
    if record is None:
        return
    score = f"best validation {record.metric} {record.valid:.4f} in epoch {record.best_epoch}"
    tested = "" if record.test is None else f", test {record.metric} there {record.test:.4f}"
    console.print(f"{record.ended}: {record.epochs} epochs in {record.seconds:.0f} s; {score}{tested}", markup=False)
    spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in record.parts.items())
    console.print(f"seconds: {spent}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{folder}", markup=False, soft_wrap=True)
