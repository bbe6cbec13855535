"""Where a run keeps its files, and whether it may begin there."""

from __future__ import annotations

import os
from pathlib import Path

from enfa.training.settings.config import Config

__all__ = ["BEST", "LAST", "check_place", "folder_of", "started_by_another"]

BEST, LAST = "best.ckpt", "last.ckpt"


def folder_of(config: Config) -> Path:
    """Where a run keeps its checkpoints and logs."""
    return Path(config.out) / config.name / f"fold-{config.fold}-seed-{config.seed}"


def started_by_another() -> bool:
    """Whether this is a process that Lightning started for a further rank."""
    return int(os.environ.get("LOCAL_RANK", 0)) > 0


def check_place(config: Config, resume: bool) -> None:
    """Refuse to begin where a run has been, and to go on where none has."""
    folder = folder_of(config)
    there = (folder / LAST).exists()
    if there and not resume and not started_by_another():
        raise ValueError(f"{folder} holds a run already: --resume continues it; another 'out' or 'name' keeps both")
    if resume and not there:
        raise FileNotFoundError(f"There is no run to resume in {folder}")
