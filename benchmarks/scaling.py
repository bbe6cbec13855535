"""How a root readout scales with the size of one graph: node marking, two layers, forward and backward.

    python benchmarks/scaling.py                          # n from 10^3 to 10^6, ten edges per node
    python benchmarks/scaling.py --degree 20 --nodes 1000000
    python benchmarks/scaling.py --hubs 1000,10000        # one node of very high degree beside

Each size runs in a process of its own, so that peak memory is its own. Time and memory per node should stay flat: the
exponent is the slope of log(time) over log(n), 1 for linear growth. The conventional bag would have n squared rows.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time

import torch

import enfa
from enfa.testing import large_graph


def _peak() -> float:
    """GiB that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(nodes: int, degree: int, kinds: int, hub: int, hidden: int, threads: int) -> dict[str, object]:
    """One size, in this process."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    model = enfa.DSGNN([kinds], hidden, 4, 2, norm="layer", readout="root")
    warm_up = enfa.make_plan([large_graph(100, 2, kinds=kinds)], enfa.NodeMarking(), model.spec)
    model(warm_up).square().mean().backward()
    graph = large_graph(nodes, degree, kinds=kinds, hub=hub)
    before = _peak()
    start = time.perf_counter()
    try:
        plan = enfa.make_plan([graph], enfa.NodeMarking(), model.spec)
    except ValueError as error:
        return {"nodes": nodes, "hub": hub, "refused": str(error), "plan_s": time.perf_counter() - start}
    planned = time.perf_counter()
    model(plan).square().mean().backward()
    done = time.perf_counter()
    cost = plan.cost()
    return {
        "nodes": nodes, "edges": graph.num_edges, "hub": hub, "rows": cost.rows, "messages": cost.edges,
        "plan_s": planned - start, "step_s": done - planned, "peak_gib": _peak(), "graph_gib": before,
    }  # fmt: skip


def _in_a_process(arguments: argparse.Namespace, nodes: int, hub: int) -> dict[str, object]:
    command = [sys.executable, __file__, "--one", f"{nodes},{hub}"]
    for name in ("degree", "kinds", "hidden", "threads"):
        command += [f"--{name}", str(getattr(arguments, name))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        return {"nodes": nodes, "hub": hub, "refused": done.stderr.strip().splitlines()[-1]}
    return json.loads(done.stdout)


def exponent(found: list[dict], name: str) -> float:
    """Slope of log(name) over log(nodes), by least squares."""
    x = [math.log(f["nodes"]) for f in found]
    y = [math.log(max(f[name], 1e-9)) for f in found]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def _line(f: dict) -> str:
    if "refused" in f:
        return f"| {f['nodes']:,} | {f['hub']:,} | refused: {f['refused']} |"
    per_node = 1e6 * (f["plan_s"] + f["step_s"]) / f["nodes"]
    kib = 2**20 * (f["peak_gib"] - f["graph_gib"]) / f["nodes"]
    return (
        f"| {f['nodes']:,} | {f['hub']:,} | {f['edges']:,} | {f['rows'][0]:,} + {f['rows'][1]:,} | {f['plan_s']:.2f} | "
        f"{f['step_s']:.2f} | {per_node:.1f} | {f['peak_gib']:.2f} | {kib:.1f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default="1000,10000,100000,1000000")
    parser.add_argument("--hubs", default="", help="degrees of one extra node, tried on a graph of 10^5")
    parser.add_argument("--degree", type=int, default=10)
    parser.add_argument("--kinds", type=int, default=4, help="distinct node features")
    parser.add_argument("--hidden", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        nodes, hub = (int(v) for v in arguments.one.split(","))
        options = {name: getattr(arguments, name) for name in ("degree", "kinds", "hidden", "threads")}
        print(json.dumps(measure(nodes, hub=hub, **options)))
        return
    print(f"degree {arguments.degree}, {arguments.kinds} kinds of nodes, width {arguments.hidden}, float32, "
          f"{arguments.threads} threads")  # fmt: skip
    names = "nodes", "hub", "directed edges", "rows, layer 1 + 2", "plan s", "step s", "us per node", "peak GiB"
    print("| " + " | ".join((*names, "KiB per node")) + " |")
    print("|" + "---|" * 9)
    found = []
    for nodes in (int(v) for v in arguments.nodes.split(",") if v):
        found.append(_in_a_process(arguments, nodes, 0))
        print(_line(found[-1]), flush=True)
    if len(found) > 1 and not any("refused" in f for f in found):
        total = [{**f, "total": f["plan_s"] + f["step_s"], "memory": f["peak_gib"] - f["graph_gib"]} for f in found]
        print(f"exponents: time {exponent(total, 'total'):.2f}, memory {exponent(total, 'memory'):.2f}")
    for hub in (int(v) for v in arguments.hubs.split(",") if v):
        print(_line(_in_a_process(arguments, 100_000, hub)), flush=True)


if __name__ == "__main__":
    main()
