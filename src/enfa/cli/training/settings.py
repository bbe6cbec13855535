"""What the commands that read configs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enfa.training.settings.config import Config, settings
from enfa.training.settings.early import check_early
from enfa.training.settings.files import read_config

__all__ = ["EPILOG", "config_of"]

EPILOG = "Settings, for config files and key=value, with their defaults:\n\n" + "\n\n".join(
    f"{name} ({kind}; default {default}): {meaning}" for name, kind, default, meaning in settings()
)


def config_of(path: Path, overrides: list[str] | None, **options: Any) -> Config:
    """The settings of a run, of which all that can be is checked before PyTorch is imported."""
    config = read_config(path, overrides or [], **options)
    check_early(config)
    return config
