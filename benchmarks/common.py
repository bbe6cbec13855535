"""What the benchmarks share: the data, the machine they ran on, and where results go."""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

from enfa.datasets import Benchmark, from_npz
from enfa.report.machine import machine

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "cpu"
FILES = {name: f"{name.replace('-', '_')}.npz" for name in ("peptides-func", "ogbg-molhiv", "PROTEINS", "CEXP")}


def parser(description: str | None, result: str) -> argparse.ArgumentParser:
    """Options that every benchmark has."""
    options = argparse.ArgumentParser(description=description)
    options.add_argument("--data", help="folder of .npz files; by default $ENFA_DATA, or ../shared/data")
    options.add_argument("--quick", action="store_true", help="tiny sizes: does it run? Writes nothing by default")
    options.add_argument("--threads", type=int, default=torch.get_num_threads(), help="threads (default: all cores)")
    options.add_argument("--out", type=Path, help=f"result file (default: results/cpu/{result}.json)")
    return options


def data_folder(folder: str | None) -> Path:
    return Path(folder or os.environ.get("ENFA_DATA") or ROOT.parent / "shared" / "data")


def load(name: str, folder: str | None) -> Benchmark:
    """A dataset by name, from its file as ``enfa.datasets.from_npz`` reads it."""
    path = data_folder(folder) / FILES[name]
    if not path.exists():
        raise FileNotFoundError(f"Expected the data of {name} at {path}; say where with --data or ENFA_DATA")
    return from_npz(path, name=name)


def write(path: Path, threads: int, entries: list[dict[str, Any]], keys: Sequence[str]) -> None:
    """Write results; those of the same machine and versions that were not measured anew stay."""
    on = {"threads": threads, **machine()}
    old = json.loads(path.read_text()) if path.exists() else {}
    kept = old.get("results", []) if old.get("machine") == on else []
    new = {tuple(entry[k] for k in keys) for entry in entries}
    merged = [entry for entry in kept if tuple(entry[k] for k in keys) not in new] + entries
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"machine": on, **stamp(), "results": merged}, indent=1) + "\n")


def stamp() -> dict[str, str]:
    """When something was measured, and the commit that the code was of or came after."""
    found = subprocess.run(["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {"date": datetime.date.today().isoformat(), "commit": found.stdout.strip() or "unknown"}


def code(folder: str = "") -> str:
    """A fingerprint of the package, or of one folder of it, whatever git says."""
    files = sorted((ROOT / "src" / "enfa" / folder).rglob("*.py"))
    return hashlib.sha256(b"".join(p.read_bytes() for p in files)).hexdigest()[:8]


def device() -> str:
    """The GPU, asked for in another process: this one is to leave it alone."""
    asked = [sys.executable, "-c", "import torch; print(torch.cuda.get_device_name() if torch.cuda.is_available() else 'CPU')"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def cold_environment(folder: str | Path, given: Mapping[str, str] = os.environ) -> dict[str, str]:
    """For a process that finds no compiled kernel, and keeps those that it compiles in that folder."""
    env = {k: v for k, v in given.items() if k not in ("NUMBA_CACHE_DIR", "TRITON_CACHE_DIR")}
    return env | {"ENFA_CACHE": f"{folder}/kernels", "CUDA_CACHE_PATH": f"{folder}/driver"}


def peak_mb() -> float:
    """At most so far, in this process."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def show(title: str, columns: Sequence[str], lines: Sequence[Sequence[str]]) -> None:
    """Print a table, first column left, figures right."""
    table = Table(title=title, title_justify="left")
    for k, column in enumerate(columns):
        table.add_column(column, justify="left" if k == 0 else "right")
    for line in lines:
        table.add_row(*line)
    console = Console()
    console.width = max(console.width, 110)  # also where the output is a file
    console.print(table)
