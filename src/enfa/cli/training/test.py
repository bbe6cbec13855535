"""``enfa test``: the score of a checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.cli.training.imports import import_training
from enfa.cli.training.settings import config_of
from enfa.cli.training.telling import outlast_readers
from enfa.training.settings.folder import BEST, MEMBERS, folder_of

__all__ = ["test"]


def test(
    config: Annotated[
        Path, typer.Argument(help="The YAML or data file that was trained, or a run's folder or model.", show_default=False)
    ],
    overrides: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE]...", help="Settings that replace the file's.")
    ] = None,
    checkpoint: Annotated[Path | None, typer.Option(help="Which checkpoint.", show_default="best.ckpt of the run")] = None,
    part: Annotated[str, typer.Option(help="Which part of the split: train, valid or test.")] = "test",
    progress: Annotated[bool, typer.Option(help="Show progress bars.")] = True,
) -> None:
    """Score a trained model on the test graphs of its split."""
    if part not in ("train", "valid", "test"):
        raise ValueError(f"Expected --part to be train, valid or test, got {part!r}")
    if config.name == MEMBERS and config.is_file():  # which stands for its folder
        config = config.parent
    if config.suffix == ".ckpt" and (config.parent / "config.yaml").is_file():  # as predict takes it
        config, checkpoint = config.parent, config if checkpoint is None else checkpoint
    if config.is_dir():
        if not (config / "config.yaml").is_file():
            from enfa.training.trained.members import one_model

            one_model(config)  # names the runs of an ensemble
        config, checkpoint = config / "config.yaml", config / BEST if checkpoint is None else checkpoint
    settings = config_of(config, overrides)
    outlast_readers()
    import_training()
    from enfa.training.checkpoint import load_checkpoint  # and PyTorch, which no mistake above had to wait for
    from enfa.training.metrics import in_units
    from enfa.training.run import scored
    from enfa.training.trained.members import one_model

    path = folder_of(settings) / BEST if checkpoint is None else one_model(checkpoint)
    score, chosen = scored(settings, path, part, progress)
    of = load_checkpoint(path)["enfa"]["problem"]
    units = in_units(of["metric"], of.get("std"), of.get("targets"))(score)
    if checkpoint is None and (path.parents[1] / MEMBERS).is_file():
        other = f"{path.parent.name} is one of the ensemble {path.parents[1]}: seed=N or --checkpoint chooses another."
        Console(stderr=True).print(other, markup=False, soft_wrap=True)
    flatters = "; the epoch was chosen on this fold, which flatters (validation=next does not)" if chosen else ""
    Console().print(f"{part} score: {of['metric']} {score:.6f}{units}{flatters}", markup=False, soft_wrap=True)
