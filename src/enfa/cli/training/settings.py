"""What the commands that read configs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from enfa.training.settings.config import Config, settings
from enfa.training.settings.files import read_config

__all__ = ["SETTINGS", "config_of"]

SETTINGS = "Settings, for config files and key=value, with their defaults:\n\n" + "\n\n".join(
    f"{name} ({kind}; default {default}): {meaning}" for name, kind, default, meaning in settings()
)


def config_of(path: Path, overrides: list[str] | None, **options: Any) -> Config:
    return read_config(path, overrides or [], **options)
