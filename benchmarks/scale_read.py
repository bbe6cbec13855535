"""Reading a sharded dataset: how fast batches are cut, what reading costs beside, and in how much memory.

    python benchmarks/scale_read.py                          # 20,000 molecules of ZINC-full, within 1 GiB
    python benchmarks/scale_read.py --graphs 100000 --memory "2 GiB"
    python benchmarks/scale_read.py --folder FOLDER          # a dataset that is there: an epoch's worth of batches
    python benchmarks/scale_read.py --quick

Claims, node marking, 6 layers, GINE: batches of 128 out of windows of shards are cut at least 0.8 times as fast as out of one
table in memory; an epoch takes no more memory than was given, beside what Python and PyTorch take and 1/10
for batches and the order of graphs. Times are CPU time: cutting
is that of the thread that cuts; reading is the rest, which other threads do ahead. Each part runs in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch

import enfa
from common import RESULTS, ROOT, parser, peak_mb, show, write
from enfa.datasets.npz.zinc import load_zinc
from enfa.report.program import ds_program
from enfa.testing import random_graphs

BATCH, LAYERS = 128, 6
LIMIT = 0.8


def _ready() -> None:
    """Numba compiles, or reads its cache, before anything is measured."""
    torch.set_num_threads(1)
    enfa.compile(random_graphs(4, edge_channels=2), enfa.NodeMarking(), ds_program(2, edges=True), progress=False)[:]


def _compile(path: Path, count: int, shard_size: int, data: str | None) -> None:
    folder = Path(data or os.environ.get("ENFA_DATA") or ROOT.parent / "shared" / "data")
    every = load_zinc("ZINC-full", folder / "ZINC.npz").graphs
    graphs = [every[i] for i in np.linspace(0, len(every) - 1, count).astype(int)]  # of all parts of its split
    program, options = ds_program(LAYERS, edges=True), {"progress": False}
    enfa.compile(graphs, enfa.NodeMarking(), program, **options).save(path / "one.enfa")
    enfa.compile(graphs, enfa.NodeMarking(), program, out=path / "shards", shard_size=shard_size, **options)


def _one(path: Path) -> dict[str, Any]:
    """Out of one table: the second of two epochs."""
    _ready()
    compiled = enfa.load_compiled(path / "one.enfa")
    for _ in range(2):
        order, rows, spent, begin = np.random.default_rng(0).permutation(len(compiled)), 0, 0.0, 0
        while begin < len(order):
            start = time.thread_time()
            plan = compiled[order[begin : begin + BATCH]]
            spent += time.thread_time() - start
            rows, begin = rows + sum(plan.cost().rows), begin + BATCH
    batches = -(-len(order) // BATCH)
    return {"one_cut_ms": 1e3 * spent / batches, "one_rows": rows / batches, "one_peak_mb": peak_mb()}


def _read(path: Path, memory: str, most: int) -> dict[str, Any]:
    """An epoch, or its first ``most`` batches, out of windows."""
    _ready()
    before = peak_mb()
    sharded = enfa.ShardedDataset.open(path, memory)
    sampled = enfa.DataLoader(sharded, BATCH, True).sampled
    batches = sampled.batches(0)[:most]
    rows, cut, start, wall = 0, 0.0, time.process_time(), time.perf_counter()
    for number, batch in enumerate(batches):
        sharded.follow(sampled, 0, number)
        begin = time.thread_time()
        plan = sharded[batch]
        cut += time.thread_time() - begin
        rows += sum(plan.cost().rows)
    everything = time.process_time() - start
    windows = len(sampled.cuts(0))
    return {
        "graphs": len(sharded), "shards": len(sharded.shards), "windows": windows, "batches": len(batches),
        "memory_gib": sharded.memory / 2**30, "cut_ms": 1e3 * cut / len(batches), "rows": rows / len(batches),
        "read_ms": 1e3 * (everything - cut) / len(batches), "wall_ms": 1e3 * (time.perf_counter() - wall) / len(batches),
        "start_mb": before, "peak_mb": peak_mb(),
    }  # fmt: skip


def _alone(function: Callable[..., Any], *args: Any) -> Any:
    """Run in a fresh process."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *args).result()


def main() -> None:
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "scale_read")
    options.add_argument("--graphs", type=int, default=20_000, help="molecules of ZINC-full (default: 20,000)")
    options.add_argument("--shard-size", type=int, default=2_000, help="graphs of a shard (default: 2,000)")
    options.add_argument("--memory", default="1 GiB", help="for shards (default: 1 GiB)")
    options.add_argument("--folder", type=Path, help="a sharded dataset, instead of making one")
    options.add_argument("--batches", type=int, default=10**9, help="at most so many of the epoch")
    args = options.parse_args()
    if args.quick:
        args.graphs, args.shard_size, args.memory = 600, 100, "24 MiB"
    entry: dict[str, Any] = {"dataset": "ZINC-full" if args.folder is None else args.folder.name, "layers": LAYERS}
    if args.folder is not None:
        entry |= _alone(_read, args.folder, args.memory, args.batches)
    else:
        with tempfile.TemporaryDirectory() as scratch:
            path = Path(scratch)
            _alone(_compile, path, args.graphs, args.shard_size, args.data)
            entry |= _alone(_read, path / "shards", args.memory, args.batches) | _alone(_one, path)
            entry["cut_ratio"] = entry["one_cut_ms"] / entry["cut_ms"]
    entry = {k: round(v, 3) if isinstance(v, float) else v for k, v in entry.items()}
    show(f"Batches of {BATCH}, CPU time", ("", "cut ms", "read ms", "rows", "peak MB"), [
        [f"{entry['shards']} shards, {entry['windows']} windows", f"{entry['cut_ms']:.2f}", f"{entry['read_ms']:.2f}",
         f"{entry['rows']:,.0f}", f"{entry['peak_mb']:,.0f}"],
        *([] if args.folder else [["one table", f"{entry['one_cut_ms']:.2f}", "", f"{entry['one_rows']:,.0f}",
                                   f"{entry['one_peak_mb']:,.0f}"]]),
    ])  # fmt: skip
    kept = {"memory": entry["peak_mb"] - entry["start_mb"] <= 1.1 * entry["memory_gib"] * 2**30 / 1e6}
    if args.folder is None:
        kept["speed"] = entry["cut_ratio"] >= LIMIT
        print(f"cut {entry['cut_ratio']:.2f} times as fast as out of one table")
    print(f"{entry['peak_mb'] - entry['start_mb']:,.0f} MB beside the {entry['start_mb']:,.0f} MB of Python and PyTorch")
    print("; ".join(f"{name}: {'kept' if held else 'MISSED'}" for name, held in kept.items()))
    if args.out or not args.quick:
        write(args.out or RESULTS / "scale_read.json", args.threads, [entry], ["dataset", "graphs", "memory_gib"])


if __name__ == "__main__":
    main()
