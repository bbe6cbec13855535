"""Measure what is missing. The pages are written by ``pages/write.py``, which draws."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from enfa.graphs.names import unknown
from enfa.report.data import Source
from enfa.report.machine import machine
from enfa.report.measure.accuracy import read_accuracy
from enfa.report.measure.exactness import measure_exactness
from enfa.report.measure.storage import measure_breakdown, measure_table
from enfa.report.measure.store import Store, read_section
from enfa.report.measure.time import measure_time
from enfa.report.settings import SECTIONS, Settings

__all__ = ["check_beforehand", "check_sections", "measure", "missing", "open_store", "seconds_left"]

MEASURE: dict[str, Callable[[Source, Settings, Store], Iterator[str]]] = {
    "storage": measure_table,
    "breakdown": measure_breakdown,
    "exactness": measure_exactness,
    "time": measure_time,
}


# What one measurement takes, in seconds, as a mean over all datasets: of samples on two cores (a GPU takes no longer); of whole
# datasets on two cores, where a few of each kind were timed, and on an H200 with 16 cores, where exactness is a guess.
SECONDS: dict[tuple[str, str], dict[str, float]] = {
    ("quick", "cpu"): {"storage": 2.7, "breakdown": 0.1, "exactness": 8.5, "time": 1.4},
    ("quick", "cuda"): {"storage": 2.7, "breakdown": 0.1, "exactness": 8.5, "time": 1.4},
    ("full", "cpu"): {"storage": 22, "breakdown": 0.1, "exactness": 45, "time": 23},
    ("full", "cuda"): {"storage": 50, "breakdown": 0.1, "exactness": 25, "time": 1.2},
}
WEIGHT = 2  # measurements that such a mean counts as, once there are some of this run, which begins with the smaller graphs


class _Planned:
    """In place of a store: notes what is not there, and measures nothing."""

    def __init__(self, store: Store) -> None:
        self.section, self.missing = store.section, Counter[str]()

    def compute(self, name: str, key: str, measure: Callable[[], Any]) -> None:
        self.missing[name] += key not in self.section(name)


def missing(sections: Sequence[str], source: Source, settings: Settings, store: Store) -> Counter[str]:
    """How many measurements of each section are to be made."""
    planned: Any = _Planned(store)
    for name in sections:
        for _ in MEASURE[name](source, settings, planned) if name in MEASURE else ():
            pass
    return +planned.missing


def seconds_left(left: Mapping[str, int], spent: Mapping[str, Sequence[float]], settings: Settings) -> float:
    """By what measurements of each section take as a rule, and took so far."""
    known = SECONDS.get((settings.scale, settings.device), SECONDS["quick", "cpu"])
    total = 0.0
    for name, count in left.items():
        done = spent.get(name, ())
        total += count * (WEIGHT * known[name] + sum(done)) / (WEIGHT + len(done))
    return total


def check_sections(only: Sequence[str]) -> tuple[str, ...]:
    """The sections asked for, all of them if none are named."""
    for name in only:
        if name not in SECTIONS:
            raise unknown("a section", name, SECTIONS)
    return tuple(s for s in SECTIONS if s in only or not only)


def check_beforehand(sections: Sequence[str], out: Path, results: Path) -> None:
    """Refuse damaged files that are read only after hours of measuring: of other sections for the pages, and of scores."""
    for name in SECTIONS:
        path = out / "results" / f"{name}.json"
        if name not in sections and path.exists():
            read_section(path)
    if "accuracy" in sections:
        read_accuracy(results)


def open_store(out: Path, settings: Settings, fresh: bool) -> Store:
    gpu = {"gpu": torch.cuda.get_device_name()} if settings.device == "cuda" else {}
    return Store(out / "results", settings, {**gpu, **machine()}, fresh)


def measure(sections: Sequence[str], source: Source, settings: Settings, store: Store, results: Path) -> Iterator[str]:
    """Do what is not done yet. Yields "section: what" after every measurement."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    for name in sections:
        if name == "accuracy":
            # reading is quick, and there may be more runs than last time
            store.compute(name, "files", lambda: read_accuracy(results), again=True)
            yield name
        else:
            for key in MEASURE[name](source, settings, store):
                yield f"{name}: {key}"
