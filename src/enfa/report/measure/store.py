"""Results on disk, written as soon as they are computed: an interrupted report continues where it stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from enfa.atomic import write_atomically
from enfa.locks import alone_in
from enfa.report.settings import MACHINE, MATTERS, Settings

__all__ = ["Store", "read_section"]


def read_section(path: Path) -> dict[str, Any]:
    """A file that a store has written; another one is refused by its name."""
    try:
        found = json.loads(path.read_text())
        for what in ("settings", "machine", "results"):
            if not isinstance(found[what], dict):
                raise TypeError(f"no {what}")
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"{path}: expected results of enfa reproduce, got a damaged file ({type(error).__name__}: {error}); remove it, and "
            f"its section is measured again"
        ) from error
    return found


class Store:
    """One JSON file per section under ``folder``: settings, machine, and results by key.

    Results of other settings, or of another machine where that matters, are never mixed in: opening them is an error that says
    what differs, unless ``fresh`` discards them. Several processes may fill one folder: each keeps what others have measured.
    """

    def __init__(self, folder: Path, settings: Settings, machine: dict[str, Any], fresh: bool = False) -> None:
        self.folder, self.settings, self.machine = folder, settings.plain(), machine
        folder.mkdir(parents=True, exist_ok=True)
        self.fresh = fresh
        self.measured: set[tuple[str, str]] = set()  # section and key of what was measured here, not found
        self._open: dict[str, dict[str, Any]] = {}

    def section(self, name: str) -> dict[str, Any]:
        """The results of a section so far: key -> value."""
        if name not in self._open:
            self._open[name] = self._read(name) or {"settings": self.settings, "machine": self.machine, "results": {}}
        return self._open[name]["results"]

    def _read(self, name: str) -> dict[str, Any] | None:
        """What is on the disk; with ``fresh`` only once something of the section was written here: before, it is discarded."""
        path = self.folder / f"{name}.json"
        if not path.exists() or (self.fresh and all(section != name for section, _ in self.measured)):
            return None
        found = read_section(path)
        self._check(path, found, name)
        return found

    def _merge(self, name: str) -> None:
        """Take in what another process has written since."""
        mine, found = self.section(name), self._read(name)
        if found is not None:
            merged = {**found["results"], **mine}
            mine.clear()
            mine.update(merged)

    def _check(self, path: Path, found: dict[str, Any], section: str) -> None:
        of_machine = MACHINE.get(section, tuple(self.machine))
        for what, mine, keys in (("settings", self.settings, MATTERS[section]), ("machine", self.machine, of_machine)):
            for key in keys:
                there, here = found[what].get(key), mine.get(key)
                if there != here:
                    raise ValueError(
                        f"{path} was measured with {key} = {there!r}, this is {here!r}; "
                        "choose another --out, or say --fresh to measure again"
                    )

    def compute(self, name: str, key: str, measure: Callable[[], Any], again: bool = False) -> Any:
        """The stored result, or ``measure()``, stored before it is returned. ``again``: measured even if it is there."""
        results = self.section(name)
        if key not in results:
            self._merge(name)
        if key not in results or again:
            results[key] = measure()
            with alone_in(self.folder):
                self._merge(name)
                write_atomically(self.folder / f"{name}.json", [json.dumps(self._open[name], indent=1).encode()])
            self.measured.add((name, key))
        return results[key]
