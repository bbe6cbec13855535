"""Running many cases in order, counting them, and going on where a run before has stopped."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

import enfa
from enfa.atomic import write_atomically
from enfa.report.machine import machine
from fuzz_parts.draw import Case, draw_case
from fuzz_parts.verdict import Verdict, judge

CHUNK = 50  # cases that a process takes at a time
FACTORS = ("policy", "conv", "readout", "model", "norm", "mode", "plan", "depth", "features", "graphs", "dropout")
Counts = dict[str, dict[str, dict[str, int]]]  # factor -> value -> verdict -> cases
Found = tuple[int, dict[str, list[str]], Verdict]  # number of a case, its values of every factor, and the verdict


def _digest(folder: Path, *names: str) -> str:
    """Of the Python files of a folder."""
    found = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*.py") if not names or p.name in names):
        found.update(path.read_bytes())
    return found.hexdigest()[:16]


def cases_digest() -> str:
    """Of what decides which case a number is."""
    return _digest(Path(__file__).parent, "draw.py", "graphs.py", "convs.py")


def package_digest() -> str:
    return _digest(Path(enfa.__file__).parent)


def values_of(case: Case, verdict: Verdict) -> dict[str, list[str]]:
    """What a case counts for."""
    found = {name: [str(case.settings[name])] for name in FACTORS}
    families = sorted({case.families[g] for g in case.chosen})
    return {**found, "family": families, "yardstick": [verdict.yardstick], "live": [str(verdict.live)]}


def run_chunk(work: tuple[int, int, int]) -> tuple[list[Found], float]:
    """Cases from one number up to another, stopping after a difference; and the seconds of CPU time that they took."""
    seed, begin, end = work
    torch.set_num_threads(1)
    found: list[Found] = []
    start = time.process_time()
    for number in range(begin, end):
        case = draw_case(seed, number)
        verdict = judge(case)
        found.append((number, values_of(case, verdict), verdict))
        if verdict.verdict == "difference":
            break
    return found, time.process_time() - start


def _chunks(seed: int, begin: int, end: int) -> Iterator[tuple[int, int, int]]:
    for first in range(begin, end, CHUNK):
        yield seed, first, min(first + CHUNK, end)


class Campaign:
    """The counts of a seed, in a file."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path, self.seed = path, seed
        self.next, self.seconds, self.cpu_seconds = 0, 0.0, 0.0
        self.verdicts: dict[str, int] = {}
        self.counts: Counts = {}
        self.packages: list[dict[str, Any]] = []  # from which case on which sources were run
        self.difference: dict[str, Any] | None = None
        if path.exists():
            self._load(json.loads(path.read_text()))
        if not self.packages or self.packages[-1]["sources"] != package_digest():
            self.packages.append({"from": self.next, "sources": package_digest()})

    def _load(self, held: dict[str, Any]) -> None:
        mine = {"seed": self.seed, "cases": cases_digest()}
        for name, value in mine.items():
            if held[name] != value:
                raise ValueError(
                    f"Expected {self.path} to hold counts of {name} {value}, got {held[name]}: remove it, or name another --out"
                )
        for name in ("next", "seconds", "cpu_seconds", "verdicts", "counts", "packages"):
            setattr(self, name, held[name])

    def add(self, found: Found) -> None:
        number, values, verdict = found
        assert number == self.next
        if verdict.verdict == "difference":  # not counted: running again begins with it
            self.difference = {"case": number, "what": verdict.what, "off": f"{verdict.off:.2g}"}
            return
        self.next += 1
        self.verdicts[verdict.verdict] = self.verdicts.get(verdict.verdict, 0) + 1
        for factor, of in values.items():
            for value in of:
                cell = self.counts.setdefault(factor, {}).setdefault(value, {})
                cell[verdict.verdict] = cell.get(verdict.verdict, 0) + 1

    def write(self) -> None:
        counts = {factor: dict(sorted(of.items())) for factor, of in self.counts.items()}
        held = {
            "machine": machine(), "seed": self.seed, "cases": cases_digest(), "next": self.next,
            "seconds": round(self.seconds, 1), "cpu_seconds": round(self.cpu_seconds, 1), "packages": self.packages,
            "verdicts": self.verdicts, "difference": self.difference, "counts": counts,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(self.path, [json.dumps(held, indent=1).encode(), b"\n"])

    def run(self, cases: int, workers: int, every: float, tell: Callable[[Campaign], None]) -> None:
        """Up to case ``cases``, or the first difference. Writes the file and tells how it stands every few seconds.

        Chunks come back in order whoever ran them, so the counts do not depend on the number of workers.
        """
        work = _chunks(self.seed, self.next, cases)
        if workers == 1:
            self._take(map(run_chunk, work), every, tell)
            return
        # a fresh interpreter each: forking one that runs threads is not safe
        with multiprocessing.get_context("spawn").Pool(workers) as pool:
            self._take(pool.imap(run_chunk, work), every, tell)

    def _take(self, chunks: Iterable[tuple[list[Found], float]], every: float, tell: Callable[[Campaign], None]) -> None:
        clock = told = time.perf_counter()
        for chunk, cpu in chunks:
            for found in chunk:
                self.add(found)
            now = time.perf_counter()
            self.seconds, self.cpu_seconds, clock = self.seconds + now - clock, self.cpu_seconds + cpu, now
            if now - told > every or self.difference is not None:
                self.write()
                tell(self)
                told = now
            if self.difference is not None:
                return
        self.write()
        tell(self)
