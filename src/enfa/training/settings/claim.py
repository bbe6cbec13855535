"""One process at a time trains into a run's folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from enfa.locks import holding
from enfa.training.settings.config import Config
from enfa.training.settings.folder import check_place, folder_of, started_by_another

__all__ = ["RUNNING", "Held", "claimed"]

RUNNING = ".running"


class Held(ValueError):
    """Another process trains into the folder: the one that ``by`` names."""

    def __init__(self, folder: Path, by: str) -> None:
        self.by = by
        super().__init__(
            f"{folder} is being trained into by another process ({by}, as {RUNNING} there says): Expected one at a time, got "
            f"two; another 'out' or 'name' keeps both"
        )


@contextmanager
def claimed(config: Config, resume: bool) -> Iterator[None]:
    """Hold the folder of a run, and refuse one that another process holds, or that ``check_place`` refuses."""
    check_place(config, resume)
    if started_by_another():  # for the process that holds it
        yield
        return
    folder = folder_of(config)
    new = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with holding(folder / RUNNING) as ours:
            if not ours:
                number = "just begun"
                with suppress(OSError):  # it may have ended since
                    number = (folder / RUNNING).read_text() or number
                raise Held(folder, number)
            check_place(config, resume)  # again: another may have begun and ended since
            yield
    finally:
        with suppress(OSError):  # one that something was written into
            for path in new:
                path.rmdir()
