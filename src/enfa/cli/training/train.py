"""``enfa train``: one run, or several seeds of it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from enfa.ahead import begin
from enfa.cli.training.imports import import_training
from enfa.cli.training.settings import EPILOG, config_of, file_of_run
from enfa.cli.training.telling import Telling, outlast_readers
from enfa.graphs.names import unknown
from enfa.training.results.parts import Parts
from enfa.training.settings.folder import LAST, check_place, check_places, folder_of, started_by_another
from enfa.training.settings.kernels import GPU, groups_of
from enfa.training.settings.words import in_words

if TYPE_CHECKING:
    from enfa.training.results.record import Record

__all__ = ["EPILOG", "train"]

TASKS = ("auto", "classification", "regression", "nodes", "links")


def train(
    config: Annotated[
        Path,
        typer.Argument(
            help="A YAML file of settings, a .csv file of molecules, an .npz file of graphs, or a run's folder to --resume.",
            show_default=False,
        ),
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace the file's.")
    ] = None,
    smiles: Annotated[str | None, typer.Option(help="The column of SMILES strings.", show_default="the one named so")] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(help="A column to learn; may be given several times.", show_default="the one other column"),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="classification, regression, auto to see which; nodes or links of one graph.", show_default="auto"),
    ] = None,
    split: Annotated[
        str | None,
        typer.Option(help="random, scaffold, or column:NAME, which says train, valid or test.", show_default="random"),
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read.")] = False,
    seed: Annotated[int | None, typer.Option(help="Of weights, shuffling and dropout.", show_default="0")] = None,
    ensemble: Annotated[
        int | None, typer.Option(min=2, help="Train so many models, with seeds from --seed on.", show_default="one")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue from the run's last checkpoint.")] = False,
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Train one model, or an ensemble. Checkpoints (best.ckpt, last.ckpt) and logs go to OUT/NAME/fold-F-seed-S. Ctrl-C loses
    at most the epoch it falls into; --resume goes on from there, to the same weights as without the break."""
    if task not in (None, *TASKS):
        raise unknown("--task", task, TASKS)
    options: dict[str, Any] = {"smiles": smiles, "targets": target, "task": task, "split": split, "seed": seed}
    options = {name: value for name, value in options.items() if value not in (None, [])}
    if skip_bad:
        options["skip_bad"] = True
    if task in ("nodes", "links"):
        options["level"] = options.pop("task")
    settings, console = config_of(file_of_run(config), overrides, **options), Console()
    folder = folder_of(settings)
    if config.is_dir() and resume and folder.resolve() != config.resolve():
        raise ValueError(
            f"{config} holds the settings of a run in {folder}: Expected the working directory it was begun in, or, if it was "
            f"moved, out=FOLDER and name=NAME of now"
        )
    outlast_readers()
    if ensemble is None:
        check_place(settings, resume)
    elif not resume:
        check_places([replace(settings, seed=settings.seed + k) for k in range(ensemble)])
    groups = groups_of(settings)
    begin(*groups)  # the settings are right: what has to be compiled for them is, while PyTorch is imported
    telling = Telling(Console(stderr=True))
    if progress and not started_by_another():
        telling.console.print(f"training on {in_words(settings)}", markup=False, highlight=False, soft_wrap=True)
    parts = Parts(telling if progress else None)
    try:
        with parts.timed("import"):  # and PyTorch, which no mistake above had to wait for
            import_training(gpu=any(name in GPU for name in groups) and settings.devices == 1)
            from enfa.cli.training.bad_rows import opened
            from enfa.training.run import fit
            from enfa.training.start.prepare import needs_lightning
            from enfa.training.trained.ensemble import fit_ensemble

            needs_lightning()
        with parts.timed("read"):
            data = opened(settings) if settings.level == "graphs" else None
        if ensemble is not None:
            telling.stop()
            folder = fit_ensemble(
                settings, ensemble, resume=resume, progress=progress, data=data,
                report=lambda each, record: _say(console, record, f"seed {each.seed}: "),
            )  # fmt: skip
        else:
            record = fit(settings, resume=resume, progress=progress, data=data, parts=parts)
            if record is None:
                return
            telling.stop()
            _say(console, record)
    except (KeyboardInterrupt, SystemExit):
        kept = f"{folder / LAST} is kept: --resume continues it." if (folder / LAST).exists() else "Nothing was saved yet."
        if ensemble is not None:
            kept = "What was saved is kept: --resume continues it."
        Console(stderr=True).print(f"Interrupted. {kept}", markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    finally:
        telling.stop()
    console.print(f"{folder}", markup=False, soft_wrap=True)


def _say(console: Console, record: Record, which: str = "") -> None:
    score = f"best validation {record.metric} {record.valid:.4f} in epoch {record.best_epoch}"
    tested = ", on the test fold: chosen there, it flatters (validation=next does not)"
    if record.test is not None:
        tested = f", test {record.metric} there {record.test:.4f}{record.units(record.test)}"
    epochs = f"{record.epochs} epoch{'s' * (record.epochs != 1)}"
    line = f"{which}{record.ended}: {epochs} in {record.seconds:.0f} s; {score}{tested}"
    console.print(line, markup=False, soft_wrap=True)
    if not which:
        spent = ", ".join(f"{name} {seconds:.1f}" for name, seconds in record.parts.items())
        console.print(f"seconds: {spent}", markup=False, highlight=False, soft_wrap=True)
