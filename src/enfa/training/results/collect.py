"""Result files: one JSON per config, holding every run of it, and what they come to together."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from enfa.locks import alone_in
from enfa.training.disk import write_text
from enfa.training.metrics import best_of, in_percent
from enfa.training.results.record import Record
from enfa.training.settings.config import Config

__all__ = ["Results", "Summary"]

# Where and which run it was, not what was computed: no reason to run again.
_PLACE = {
    "root", "cache", "accelerator", "devices", "num_workers", "graphed", "threads", "name", "out", "paper", "fold", "seed",
}  # fmt: skip
OUT_OF_TIME = "out of time"


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation over runs, in percent where the metric is a share."""

    mean: float
    std: float
    runs: int
    epoch: int | None  # the epoch whose mean over the folds is best, where that is the protocol
    notes: tuple[str, ...]
    percent: bool = True
    validation: float | None = None  # mean of the scores that chose the epochs, where others are reported

    def __str__(self) -> str:
        digits = 1 if self.percent else 4
        return f"{self.mean:.{digits}f}" + (f" ± {self.std:.{digits}f}" if self.runs > 1 else "")


class Results:
    """All runs of one config, kept in one file."""

    def __init__(self, path: Path, config: Config, records: list[Record]) -> None:
        self.path, self.config, self.records = path, config, records

    @classmethod
    def open(cls, folder: Path, config: Config) -> Results:
        """The file of a config, which may not exist yet. One with runs of other settings is refused."""
        path = folder / f"{config.name}.json"
        if not path.exists():
            return cls(path, config, [])
        found = cls.load(path)
        there, here = found.config.to_dict(), config.to_dict()
        differ = [f"{k} is {there[k]!r} there and {here[k]!r} here" for k in here if k not in _PLACE and there[k] != here[k]]
        if differ:
            raise ValueError(f"{path} holds runs with other settings ({', '.join(differ)}): set name=... to keep both")
        return found

    @classmethod
    def load(cls, path: Path) -> Results:
        try:
            values = json.loads(path.read_text(encoding="utf-8"))
            config = Config.filed(values["config"])
            records = [Record.from_dict({"config": values["config"], **run}) for run in values["runs"]]
        except (json.JSONDecodeError, KeyError, TypeError, UnicodeDecodeError) as error:
            raise ValueError(f"{path} is no file of results ({type(error).__name__}: {error})") from error
        return cls(path, config, records)

    def has(self, fold: int, seed: int) -> bool:
        """Whether this run is done. One that ran out of time is not."""
        return any(r.fold == fold and r.seed == seed and r.ended != OUT_OF_TIME for r in self.records)

    def add(self, record: Record) -> None:
        """Take a run in, in place of an earlier try, and write the file, with what other processes have filed since."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with alone_in(self.path.parent):
            filed = Results.open(self.path.parent, self.config).records
            runs = {(r.seed, r.fold): r for r in (*self.records, *filed, record)}
            self.records = [runs[key] for key in sorted(runs)]
            write_text(self.path, self._text())

    def _text(self) -> str:
        """JSON with a line per run, so that versions of the file can be compared."""
        left_out = _PLACE - {"name", "paper"}  # folders and devices of one machine
        config = json.dumps({k: v for k, v in self.config.to_dict().items() if k not in left_out})
        runs = [{k: v for k, v in record.to_dict().items() if k != "config"} for record in self.records]
        lines = ",\n".join(json.dumps(run) for run in runs)
        return f'{{"config": {config},\n"runs": [\n{lines}\n]}}\n'

    def summary(self) -> Summary | None:
        records = self.records
        if not records:
            return None
        notes = []
        late = [r for r in records if r.ended == OUT_OF_TIME]
        if late:
            epochs = " to ".join(str(n) for n in sorted({min(r.epochs for r in late), max(r.epochs for r in late)}))
            which = "the time was up" if len(records) == 1 else f"the time of {len(late)} of {len(records)} runs was up"
            notes.append(f"{which} after {epochs} of {self.config.epochs} epochs")
        versions = {json.dumps(r.code, sort_keys=True) for r in records}
        if len(versions) > 1:
            files = ", ".join(sorted({name for r in records for name in r.code or ()}))
            notes.append(f"made with {len(versions)} versions of {files}")
        at_target = sum(r.ended == "target reached" for r in records)
        metric, percent = records[0].metric, in_percent(records[0].metric)
        if at_target:
            target = f"{100 * _target(self):g}%" if percent else f"{metric} {_target(self):g}"
            notes.append(f"{at_target} of {len(records)} runs stopped at the first epoch with {target}")
        scores, epoch, factor = [r.test for r in records], None, 100 if percent else 1
        validation: float | None = factor * float(np.mean([r.valid for r in records]))
        if any(score is None for score in scores):
            longest = max(r.epochs for r in records)
            # a run that stopped early keeps its last score
            curves = np.stack([np.pad(r.score, (0, longest - r.epochs), mode="edge") for r in records])
            epoch, validation = best_of(metric, curves.mean(0)), None
            scores = list(curves[:, epoch])
        values = factor * np.array(scores, dtype=np.float64)
        return Summary(float(values.mean()), float(values.std()), len(records), epoch, tuple(notes), percent, validation)


def _target(results: Results) -> float:
    return results.config.stop_at if results.config.stop_at is not None else 1.0
