"""Measure what is missing. The pages are written by ``pages/write.py``, which draws."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch

from enfa.graphs.names import unknown
from enfa.report.data import Source
from enfa.report.machine import machine
from enfa.report.measure.accuracy import read_accuracy
from enfa.report.measure.exactness import measure_exactness
from enfa.report.measure.storage import measure_breakdown, measure_table
from enfa.report.measure.store import Store
from enfa.report.measure.time import measure_time
from enfa.report.settings import SECTIONS, Settings

__all__ = ["check_sections", "measure", "open_store"]

MEASURE: dict[str, Callable[[Source, Settings, Store], Iterator[str]]] = {
    "storage": measure_table,
    "breakdown": measure_breakdown,
    "exactness": measure_exactness,
    "time": measure_time,
}


def check_sections(only: Sequence[str]) -> tuple[str, ...]:
    """The sections asked for, all of them if none are named."""
    for name in only:
        if name not in SECTIONS:
            raise unknown("a section", name, SECTIONS)
    return tuple(s for s in SECTIONS if s in only or not only)


def open_store(out: Path, settings: Settings, fresh: bool) -> Store:
    gpu = {"gpu": torch.cuda.get_device_name()} if settings.device == "cuda" else {}
    return Store(out / "results", settings, {**gpu, **machine()}, fresh)


def measure(sections: Sequence[str], source: Source, settings: Settings, store: Store, results: Path) -> Iterator[str]:
    """Do what is not done yet. Yields "section: what" after every measurement."""
    if settings.threads:
        torch.set_num_threads(settings.threads)
    for name in sections:
        if name == "accuracy":
            store.section(name).clear()  # reading is quick, and there may be more runs than last time
            store.compute(name, "files", lambda: read_accuracy(results))
            yield name
        else:
            for key in MEASURE[name](source, settings, store):
                yield f"{name}: {key}"
