"""Results on disk, written as soon as they are computed: an interrupted report continues where it stopped."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from enfa.atomic import write_atomically
from enfa.report.settings import MACHINE, MATTERS, Settings

__all__ = ["Store"]


class Store:
    """One JSON file per section under ``folder``: settings, machine, and results by key.

    Results of other settings, or of another machine where that matters, are never mixed in: opening them is an error that says
    what differs, unless ``fresh`` discards them.
    """

    def __init__(self, folder: Path, settings: Settings, machine: dict[str, Any], fresh: bool = False) -> None:
        self.folder, self.settings, self.machine = folder, settings.plain(), machine
        folder.mkdir(parents=True, exist_ok=True)
        self.fresh = fresh
        self._open: dict[str, dict[str, Any]] = {}

    def section(self, name: str) -> dict[str, Any]:
        """The results of a section so far: key -> value."""
        if name not in self._open:
            path, found = self.folder / f"{name}.json", None
            if path.exists() and not self.fresh:
                try:
                    found = json.loads(path.read_text())
                    self._check(path, found, name)
                except (json.JSONDecodeError, KeyError) as error:
                    raise ValueError(f"{path} is no results file ({error}); remove it, or say --fresh") from error
            self._open[name] = found or {"settings": self.settings, "machine": self.machine, "results": {}}
        return self._open[name]["results"]

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

    def compute(self, name: str, key: str, measure: Callable[[], Any]) -> Any:
        """The stored result, or ``measure()``, stored before it is returned."""
        results = self.section(name)
        if key not in results:
            results[key] = measure()
            write_atomically(self.folder / f"{name}.json", [json.dumps(self._open[name], indent=1).encode()])
        return results[key]
