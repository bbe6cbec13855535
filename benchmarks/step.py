"""One training step (forward, backward, Adam) on the full, ego and distinct plans, on the CPU: time and peak memory.

    python benchmarks/step.py                       # the first B graphs of each file
    python benchmarks/step.py --sample both         # and B graphs drawn at random
    python benchmarks/step.py --quick

Each plan runs in a process of its own. Times are medians of steps on a plan that is made beforehand. Memory is the peak
of that process above what it held before the plan was made, so making the plan counts as well.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

import enfa
from common import RESULTS, load, parser, show, write
from enfa.datasets import Benchmark, from_npz
from enfa.plan.check import KINDS

# dataset: graphs in a batch, and what the model is made with
TASKS: dict[str, tuple[int, dict[str, Any]]] = {
    "peptides-func": (32, {"conv": "gin", "num_layers": 4, "hidden_channels": 64, "jk": "last"}),
    "PROTEINS": (128, {"conv": "gin", "num_layers": 4, "hidden_channels": 32, "jk": "concat"}),
    "CEXP": (128, {"conv": "gin", "num_layers": 5, "hidden_channels": 32, "jk": "last"}),
    "ogbg-molhiv": (128, {"conv": "gine", "num_layers": 5, "hidden_channels": 64, "jk": "last"}),
}


def make_model(data: Benchmark, settings: dict[str, Any]) -> enfa.DSGNN:
    torch.manual_seed(0)
    edges = data.edge_channels if settings["conv"] == "gine" else None
    return enfa.DSGNN(data.in_channels, out_channels=data.num_outputs, edge_channels=edges, **settings)


def step(model: enfa.DSGNN, plan: enfa.Bag, y: torch.Tensor, optimiser: torch.optim.Optimizer) -> None:
    optimiser.zero_grad()
    out = model(plan)
    if y.is_floating_point():
        known = ~y.isnan()
        loss = torch.nn.functional.binary_cross_entropy_with_logits(out[known], y[known])
    else:
        loss = torch.nn.functional.cross_entropy(out, y)
    loss.backward()
    optimiser.step()


def memory_mb(what: str) -> float:
    """VmRSS, resident now, or VmHWM, the most so far. (ru_maxrss would do, did a child not inherit its parent's.)"""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what)) / 1e3


def forget_peak() -> None:
    """VmHWM starts again from VmRSS."""
    Path("/proc/self/clear_refs").write_text("5")


def measure(path: str, kind: str, settings: dict[str, Any], threads: int, seconds: float) -> dict[str, Any]:
    """In a process of its own."""
    torch.set_num_threads(threads)
    data = from_npz(path, edges="both")
    model, policy = make_model(data, settings), enfa.NodeMarking()
    optimiser = torch.optim.Adam(model.parameters())
    y = torch.from_numpy(data.labels)
    # libraries, compiled kernels and optimiser state are there before anything is measured
    step(model, enfa.make_plan(data.graphs[:1], policy, model, kind), y[:1], optimiser)
    forget_peak()
    held, start = memory_mb("VmRSS"), time.perf_counter()
    plan = enfa.make_plan(data.graphs, policy, model, kind)
    made = time.perf_counter() - start
    step(model, plan, y, optimiser)  # fills the plan's caches
    times: list[float] = []
    while len(times) < 3 or (sum(times) < seconds and len(times) < 100):
        start = time.perf_counter()
        step(model, plan, y, optimiser)
        times.append(time.perf_counter() - start)
    cost = plan.cost()
    return {
        "ms": round(1e3 * float(np.median(times)), 3),
        "ms_least": round(1e3 * min(times), 3),
        "steps": len(times),
        "peak_mb": round(memory_mb("VmHWM") - held, 1),
        "plan_ms": round(1e3 * made, 1),
        "plan_mb": round(cost.bytes / 1e6, 2),
        "rows": cost.rows,
    }


def sample(graphs: list[Data], batch: int, how: str) -> list[Data]:
    if how == "first":
        return graphs[:batch]
    return [graphs[i] for i in np.sort(np.random.RandomState(0).permutation(len(graphs))[:batch])]


def save(path: Path, graphs: list[Data]) -> None:
    """A few graphs as ``from_npz`` reads them, so that no child loads a whole dataset."""
    arrays = {
        "num_nodes": np.array([g.num_nodes for g in graphs]),
        "num_edges": np.array([g.num_edges for g in graphs]),
        "edges": torch.cat([g.edge_index for g in graphs], 1).T.numpy(),
        "x": torch.cat([g.x for g in graphs]).numpy(),
        "y": torch.cat([g.y for g in graphs]).numpy(),
    }
    if graphs[0].edge_attr is not None:
        arrays["edge_attr"] = torch.cat([g.edge_attr for g in graphs]).numpy()
    np.savez(path, **arrays)


def run(task: str, how: str, args: Any, folder: Path) -> dict[str, Any]:
    batch, settings = TASKS[task]
    graphs = sample(load(task, args.data).graphs, 4 if args.quick else batch, how)
    save(folder / "sample.npz", graphs)
    found: dict[str, Any] = {}
    for kind in KINDS:
        seconds = 0.0 if args.quick else 3.0
        job = json.dumps([str(folder / "sample.npz"), kind, settings, args.threads, seconds])
        done = subprocess.run([sys.executable, __file__, "--job", job], stdout=subprocess.PIPE, text=True, check=True)
        found[kind] = json.loads(done.stdout)
        print(f"{task}, {how}: {kind} {found[kind]['ms']:,.1f} ms, {found[kind]['peak_mb']:,.0f} MB", flush=True)
    pairs = sum(g.num_nodes**2 for g in graphs)
    nodes = sum(g.num_nodes for g in graphs)
    return {"task": task, "sample": how, "graphs": len(graphs), "nodes": nodes, "pairs": pairs, **settings, **found}


def main() -> None:
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(measure(*json.loads(sys.argv[2]))))
        return
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "step")
    options.add_argument("--tasks", nargs="+", choices=list(TASKS), default=list(TASKS))
    options.add_argument("--sample", choices=["first", "random", "both"], default="first")
    args = options.parse_args()
    ways = ["first", "random"] if args.sample == "both" else [args.sample]
    with tempfile.TemporaryDirectory() as folder:
        entries = [run(task, how, args, Path(folder)) for task in args.tasks for how in ways]
    lines = [
        [f"{e['task']}, {e['sample']} {e['graphs']}", *(f"{e[k]['ms']:,.1f}" for k in KINDS),
         f"{e['full']['ms'] / e['distinct']['ms']:.1f}", *(f"{e[k]['peak_mb']:,.0f}" for k in KINDS)]
        for e in entries
    ]  # fmt: skip
    columns = ["graphs", *(f"{k} ms" for k in KINDS), "full/distinct", *(f"{k} MB" for k in KINDS)]
    show(f"One training step, node marking, {args.threads} threads", columns, lines)
    if args.out or not args.quick:
        write(args.out or RESULTS / "step.json", args.threads, entries, ["task", "sample"])


if __name__ == "__main__":
    main()
