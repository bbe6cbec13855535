"""What a training step on the CPU gains by ``enfa.keep_memory()``: milliseconds, page faults and peak memory, with and without.

    PYTHONPATH=src python benchmarks/memory.py [--data FOLDER] [--graphs 128]

The models and graphs of benchmarks/gpu.py, distinct plans. Each way is a process of its own, one after the other.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import torch

import enfa
from common import RESULTS, data_folder, parser, show, write
from gpu_parts.cases import CASES, Dataset, loss_for, model_for, plan_for

STEPS = 15


def one(name: str, kept: bool, folder: str | None, graphs: int) -> dict[str, float]:
    """A step of one case, in this process."""
    if kept:
        assert enfa.keep_memory(), "another C library than glibc, or MALLOC_MMAP_MAX_ in the environment"
    case = next(case for case in CASES if case.name == name)
    data = Dataset(data_folder(folder), case)
    model = model_for(case, data).train()
    plan = plan_for(data, data.batch(graphs), "marking", model, "distinct")
    optimiser, loss = torch.optim.Adam(model.parameters(), lr=1e-3), loss_for(data)
    times, faults = [], 0
    for number in range(STEPS + 3):
        before, begin = resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.perf_counter()
        optimiser.zero_grad()
        loss(model(plan), plan.y).backward()  # type: ignore[operator]
        optimiser.step()
        if number >= 3:
            times.append(time.perf_counter() - begin)
            faults += resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {"ms": 1e3 * statistics.median(times), "faults": faults / STEPS, "peak_mb": peak / 1e3}


def main() -> None:
    options = parser((__doc__ or "").splitlines()[0], "memory")
    options.add_argument("--graphs", type=int, default=128)
    options.add_argument("--one", nargs=2, metavar=("CASE", "HOW"), help="this case, in this process")
    given = options.parse_args()
    torch.set_num_threads(given.threads)
    if given.one:
        print(json.dumps(one(given.one[0], given.one[1] == "kept", given.data, given.graphs)))
        return
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    graphs, entries = 4 if given.quick else given.graphs, []
    for case in CASES[:1] if given.quick else CASES:
        entry: dict[str, object] = {"case": case.name, "graphs": graphs}
        for how in ("plain", "kept"):
            command = [sys.executable, *sys.argv, "--graphs", str(graphs), "--one", case.name, how]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
            entry[how] = json.loads(done.stdout)
        entries.append(entry)
        if given.out or not given.quick:
            write(given.out or RESULTS / "memory.json", given.threads, entries, ("case", "graphs"))
    lines = [
        [e["case"], *(f"{e[how][key]:,.0f}" for key in ("ms", "faults", "peak_mb") for how in ("plain", "kept")),
         f"{e['plain']['ms'] / e['kept']['ms']:.2f}"]
        for e in entries
    ]  # fmt: skip
    head = [f"{what}, {how}" for what in ("ms", "page faults", "peak MB") for how in ("plain", "kept")]
    show(f"One training step of {graphs} graphs, {given.threads} threads", ["", *head, "faster"], lines)


if __name__ == "__main__":
    main()
