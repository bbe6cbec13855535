"""Compiling, storing, loading and slicing whole datasets.

    python benchmarks/loader.py              # molhiv and peptides-func
    python benchmarks/loader.py --quick

Claims, on two cores, node marking: compiling all of molhiv and of peptides-func (4 layers) takes at most 30 s each;
to load a stored dataset is at least 5 times faster than to compile it; to slice a batch of 128 molhiv graphs (5 layers)
is at least 10 times faster than to make the plan of these graphs alone. Every step runs in a process of its own, so
that its peak memory can be told; that includes PyTorch, and the graphs as PyG objects where a step needs them. Reading the
raw data is not timed.
"""

from __future__ import annotations

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import enfa
from common import RESULTS, load, parser, peak_mb, show, write
from enfa.report.program import ds_program
from enfa.testing import random_graphs

LIMITS = {"compile_s": 30.0, "load": 5.0, "slice": 10.0}
BATCH = 128
REPEATS = 5


def _timed(step: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = step()
    return time.perf_counter() - start, result


def _ready(threads: int) -> None:
    """Numba compiles, or reads its cache, before anything is timed."""
    torch.set_num_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        compiled = enfa.compile(random_graphs(4), enfa.NodeMarking(), ds_program(2), progress=False, threads=threads)
        compiled.save(Path(folder) / "x.enfa")
        enfa.load_compiled(Path(folder) / "x.enfa")[:]


def _graphs(name: str, options: dict[str, Any]) -> list[Any]:
    graphs = load(name, options["data"]).graphs
    return graphs[:200] if options["quick"] else graphs


def _compile(name: str, layers: int, path: Path, options: dict[str, Any]) -> dict[str, Any]:
    _ready(options["threads"])
    graphs = _graphs(name, options)
    before, program = peak_mb(), ds_program(layers, edges=True)
    seconds, compiled = _timed(
        lambda: enfa.compile(graphs, enfa.NodeMarking(), program, progress=False, threads=options["threads"])
    )
    peak = peak_mb()
    save_s, _ = _timed(lambda: compiled.save(path))
    return {
        "dataset": name,
        "layers": layers,
        "graphs": len(compiled),
        "conventional_rows": layers * compiled.num_pairs,
        "distinct_rows": sum(compiled.cost().rows),
        "compile_s": seconds,
        "compile_peak_mb": peak,
        "graphs_mb": before,
        "save_s": save_s,
        "save_peak_mb": peak_mb(),
        "file_mb": path.stat().st_size / 1e6,
    }


def _load(path: Path, options: dict[str, Any]) -> dict[str, Any]:
    _ready(options["threads"])
    first, _ = _timed(lambda: enfa.load_compiled(path))
    peak = peak_mb()
    again = [_timed(lambda: enfa.load_compiled(path))[0] for _ in range(2)]
    return {"load_s": statistics.median([first, *again]), "load_peak_mb": peak}


def _slice(name: str, path: Path, options: dict[str, Any]) -> dict[str, Any]:
    _ready(1)  # neither step has work for more; PyTorch's threads would only wait for each other on a busy machine
    compiled = enfa.load_compiled(path)
    graphs, rng = _graphs(name, options), np.random.default_rng(0)
    batches = [rng.choice(len(compiled), min(BATCH, len(compiled)), replace=False) for _ in range(12)]
    compiled[batches[0]]
    # turn and turn about, and the best of each batch: other work on the machine disturbs both, and not by the same factor
    sliced, made = np.full(len(batches), np.inf), np.full(len(batches), np.inf)
    for _ in range(REPEATS):
        for i, batch in enumerate(batches):
            chosen = [graphs[g] for g in batch]
            sliced[i] = min(sliced[i], _timed(lambda batch=batch: compiled[batch])[0])
            made[i] = min(
                made[i], _timed(lambda chosen=chosen: enfa.make_plan(chosen, enfa.NodeMarking(), compiled.program))[0]
            )
    return {
        "batch": len(batches[0]),
        "slice_ms": 1e3 * float(np.median(sliced)),
        "compile_batch_ms": 1e3 * float(np.median(made)),
        "slice_peak_mb": peak_mb(),
    }


def _alone(function: Callable[..., dict[str, Any]], *args: Any) -> dict[str, Any]:
    """Run in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args)


def main() -> None:
    args = parser(__doc__.splitlines()[0] if __doc__ else None, "loader").parse_args()
    options = {"data": args.data, "quick": args.quick, "threads": args.threads}
    entries = []
    with tempfile.TemporaryDirectory() as folder:
        for name, layers in (("ogbg-molhiv", 4), ("ogbg-molhiv", 5), ("peptides-func", 4)):
            path = Path(folder) / f"{name}-{layers}.enfa"
            entry = _alone(_compile, name, layers, path, options) | _alone(_load, path, options)
            entry |= _alone(_slice, name, path, options)
            entry["load_speedup"] = entry["compile_s"] / entry["load_s"]
            entry["slice_speedup"] = entry["compile_batch_ms"] / entry["slice_ms"]
            entries.append({k: round(v, 3) if isinstance(v, float) else v for k, v in entry.items()})
            print(f"{name}, {layers} layers: compiled in {entry['compile_s']:.1f} s", flush=True)
    columns = ("dataset", "L", "compile s", "peak MB", "file MB", "load s", "peak MB", "faster", f"slice {BATCH} ms",
               "compile them ms", "faster")  # fmt: skip
    lines = [
        [e["dataset"], str(e["layers"]), f"{e['compile_s']:.1f}", f"{e['compile_peak_mb']:,.0f}",
         f"{e['file_mb']:,.1f}",
         f"{e['load_s']:.2f}", f"{e['load_peak_mb']:,.0f}", f"{e['load_speedup']:.1f}×", f"{e['slice_ms']:.1f}",
         f"{e['compile_batch_ms']:.1f}", f"{e['slice_speedup']:.1f}×"]
        for e in entries
    ]  # fmt: skip
    show(f"Node marking, {args.threads} threads", columns, lines)
    if not args.quick:
        for e in entries:
            missed = [
                what
                for what, kept in (
                    ("compiling", e["layers"] != 4 or e["compile_s"] <= LIMITS["compile_s"]),
                    ("loading", e["load_speedup"] >= LIMITS["load"]),
                    ("slicing", e["layers"] != 5 or e["slice_speedup"] >= LIMITS["slice"]),
                )
                if not kept
            ]
            print(f"{e['dataset']}, {e['layers']} layers: " + (f"MISSED: {', '.join(missed)}" if missed else "kept"))
    if args.out or not args.quick:
        write(args.out or RESULTS / "loader.json", args.threads, entries, ["dataset", "layers"])


if __name__ == "__main__":
    main()
