"""Which files hold the models of a folder: that of a run, of an ensemble, or of ``save_pretrained``."""

from __future__ import annotations

import json
from pathlib import Path

from enfa.graphs.names import check_file_name
from enfa.nn.models.pretrained import CONFIG
from enfa.training.settings.folder import BEST, MEMBERS

__all__ = ["members", "one_model"]


def members(path: Path) -> list[Path]:
    """The checkpoints of an ensemble's folder, or of the file there that names them; of a run's folder its best one; or what is
    given, one model."""
    path = path.parent if path.name == MEMBERS and path.is_file() else path
    if not path.is_dir() or (path / CONFIG).is_file():
        return [path]
    if not (path / MEMBERS).is_file():
        if (path / BEST).is_file():
            return [path / BEST]
        runs = sorted(found.parent.name for found in path.glob(f"*/{BEST}"))
        got = f"the runs {', '.join(runs)}, of which one is to be named" if runs else "none"
        raise FileNotFoundError(
            f"There is no model in {path}: Expected {BEST} (of enfa train), {MEMBERS} (of enfa train --ensemble) or {CONFIG} "
            f"(of save_pretrained), got {got}"
        )
    try:
        runs = json.loads((path / MEMBERS).read_text(encoding="utf-8"))["runs"]
        for run in runs:
            check_file_name("a run", run)  # a folder from an untrusted source names nothing outside of it
        if len(runs) < 2:
            raise ValueError(f"got {len(runs)} of them")
    except (ValueError, TypeError, KeyError) as error:
        raise ValueError(f"{path / MEMBERS}: Expected the names of two or more runs ({error})") from error
    return [path / run / BEST for run in runs]


def one_model(path: str | Path) -> Path:
    """The one model of a file or folder. An ensemble has several, and is refused."""
    found = members(Path(path))
    if len(found) > 1:
        raise ValueError(
            f"Expected one model, got an ensemble of {len(found)}: name one of its runs, such as {found[0].parent}"
        )
    return found[0]
