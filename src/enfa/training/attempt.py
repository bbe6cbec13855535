"""One run of a sweep: begun, gone on with, or left alone, because it is done or another process is at it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from enfa.training.checkpoint import load_checkpoint
from enfa.training.results.collect import Results
from enfa.training.run import fit
from enfa.training.settings.claim import Held
from enfa.training.settings.config import Config
from enfa.training.settings.folder import LAST, folder_of
from enfa.training.start.fits import check_resumable

__all__ = ["attempt"]


def _resumable(config: Config) -> bool:
    """Whether an earlier try at this very run left a checkpoint."""
    last = folder_of(config) / LAST
    if not last.exists():
        return False
    check_resumable(last, load_checkpoint(last), config)
    return True


def attempt(config: dict[str, Any], results: Path, deadline: float | None, progress: bool = False) -> dict[str, Any] | str:
    """The record of a run, in a process of its own or in this one; or, where nothing was to be done here, why.

    ``results`` is the folder that is looked into once more: another sweep may have filed the run since this one was planned.
    """
    made = Config.make(config)
    if Results.open(results, made).has(made.fold, made.seed):
        return "done already, by another process"
    if deadline is not None and time.monotonic() > deadline:
        return "no time to begin"
    try:
        record = fit(made, resume=_resumable(made), progress=progress, deadline=deadline)
    except Held as held:
        return f"left to another process ({held.by}), which is at it"
    assert record is not None  # a sweep's runs have one device each, so no process helps another
    return record.to_dict()
