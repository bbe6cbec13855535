"""What the commands that read configs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console

from enfa.training.settings.code import unused_code
from enfa.training.settings.config import Config, settings
from enfa.training.settings.early import check_early
from enfa.training.settings.files import read_config
from enfa.training.settings.folder import started_by_another

__all__ = ["EPILOG", "config_of", "file_of_run"]

EPILOG = "Settings, for config files and key=value, with their defaults:\n\n" + "\n\n".join(
    f"{name} ({kind}; default {default}): {meaning}" for name, kind, default, meaning in settings()
)


def file_of_run(path: Path) -> Path:
    """The settings that a run's folder holds, where that is given in place of a file."""
    if path.suffix == ".ckpt" and path.is_file():
        instead = f": enfa train {path.parent} --resume goes on with its run" if (path.parent / "config.yaml").is_file() else ""
        raise ValueError(f"Expected a config, a file of data or the folder of a run, got the checkpoint {path}{instead}")
    if not path.is_dir() or (path / "config.yaml").is_file():
        return path / "config.yaml" if path.is_dir() else path
    runs = sorted(found.parent.name for found in path.glob("*/config.yaml"))
    got = f"the folder {path}, which has no config.yaml"
    if runs:
        got = f"{path} with {', '.join(runs)}: name one of these, or, for an ensemble, its config with --ensemble N --resume"
    raise ValueError(f"Expected a config, a file of data or the folder of a run, got {got}")


def config_of(path: Path, overrides: list[str] | None, **options: Any) -> Config:
    """The settings of a run, of which all that can be is checked before PyTorch is imported."""
    config = read_config(path, overrides or [], **options)
    unused = None if started_by_another() else unused_code(config)
    if unused is not None:
        Console(stderr=True).print(unused, markup=False, highlight=False, soft_wrap=True)
    check_early(config)
    return config
