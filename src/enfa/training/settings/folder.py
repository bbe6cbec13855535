"""Where a run keeps its files, and whether it may begin there."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from enfa.datasets.known import is_table
from enfa.training.settings.config import Config

__all__ = [
    "BEST", "LAST", "MEMBERS", "check_place", "check_places", "check_same_data", "fingerprint", "folder_of",
    "started_by_another",
]  # fmt: skip

BEST, LAST, MEMBERS = "best.ckpt", "last.ckpt", "ensemble.json"


def folder_of(config: Config) -> Path:
    """Where a run keeps its checkpoints and logs."""
    return Path(config.out) / config.name / f"fold-{config.fold}-seed-{config.seed}"


def started_by_another() -> bool:
    """Whether this is a process that Lightning started for a further rank."""
    return int(os.environ.get("LOCAL_RANK", 0)) > 0


def check_place(config: Config, resume: bool) -> None:
    """Refuse to begin where a run has been or nothing can be written, and to go on where no run has been."""
    folder = folder_of(config)
    _check_writable(config, folder)
    there = (folder / LAST).exists()
    if there and not resume and not started_by_another():
        raise ValueError(f"{folder} holds a run already: --resume continues it; another 'out' or 'name' keeps both")
    if resume and not there:
        raise FileNotFoundError(f"There is no run to resume in {folder}")


def _check_writable(config: Config, folder: Path) -> None:
    """Now, and not after reading and compiling."""
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        got = "which may not be written" if there.is_dir() else "which is a file"
        raise ValueError(f"Expected out={config.out} to be a folder that can be written, got {there}, {got}: choose another")


def check_places(configs: Sequence[Config]) -> None:
    """Refuse to begin an ensemble where one, or a run, has been."""
    for config in configs:
        check_place(config, resume=False)
    folder = folder_of(configs[0]).parent
    if (folder / MEMBERS).exists():
        raise ValueError(f"{folder} holds an ensemble already: --resume continues it; another 'out' or 'name' keeps both")


def fingerprint(config: Config) -> str | None:
    """Of the file of one's own data that a run reads; None for a benchmark by its name, which stays what it is."""
    path = Path(config.dataset)
    if not (is_table(path) or path.suffix == ".npz") or not path.is_file():
        return None
    with path.open("rb") as file:
        found = hashlib.sha256()
        while block := file.read(1 << 20):
            found.update(block)
    return found.hexdigest()


def check_same_data(where: Path, there: object, here: str | None, config: Config) -> None:
    """Refuse to go on with a file that was changed: ``there`` is its fingerprint of then, None where none was kept."""
    if there is not None and there != here:
        raise ValueError(
            f"{where} was trained on {config.dataset} as it was then: Expected the same file, got one that was changed since; "
            f"put it back, or begin anew with another 'name'"
        )
