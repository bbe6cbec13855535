"""Whether a run has come to its end, and the record that it left."""

from __future__ import annotations

import json
import math
from typing import Any

from enfa.training.metrics import reached
from enfa.training.results.record import Record
from enfa.training.settings.code import tell_changed_code
from enfa.training.settings.config import Config
from enfa.training.settings.folder import check_same_data, fingerprint, folder_of

__all__ = ["has_stopped", "record_of"]


def record_of(config: Config) -> Record | None:
    """The record of a run that has ended, with these very settings."""
    path = folder_of(config) / "result.json"
    if not path.is_file():
        return None
    try:
        record = Record.from_dict(json.loads(path.read_text(encoding="utf-8")))
        there = Config.make(record.config)  # also as an earlier version has written them
    except (ValueError, TypeError, KeyError):  # damaged: the checkpoint has what it takes to make it again
        return None
    if there != config:
        return None
    check_same_data(path, record.data, fingerprint(config), config)
    tell_changed_code(path, record.code, config)
    return record


def has_stopped(checkpoint: dict[str, Any], config: Config) -> bool:
    """Whether ``early_stopping`` or ``stop_at`` ended the run at this checkpoint: one more epoch would be one too many.

    Asked of the settings of now, so that a run goes on which is given more patience, or a higher target.
    """
    curve = checkpoint["enfa"]["curve"]
    if not curve or (config.early_stopping is None and config.stop_at is None):
        return False
    score = curve[-1]["score"]
    if not math.isfinite(score):  # which nothing can be better than
        return True
    if config.stop_at is not None and reached(checkpoint["enfa"]["problem"]["metric"], score, config.stop_at):
        return True
    states = [state for name, state in checkpoint["callbacks"].items() if name.startswith("EarlyStopping")]
    return config.early_stopping is not None and any(state["wait_count"] >= config.early_stopping for state in states)
