"""How a root readout scales with the size of one graph: node marking, two layers, forward and backward.

    python benchmarks/scaling.py                              # n from 10^3 to 10^6, ten edges per node, and a hub
    python benchmarks/scaling.py --nodes 1000000 --features continuous
    python benchmarks/scaling.py --nodes "" --hubs 1000,10000 # one node of very high degree beside 10^5 others
    python benchmarks/scaling.py --nodes "" --hubs "" --docs  # write the figures into docs/policies.md again

Each size runs in processes of its own, so that peak memory is its own; the fastest of a few counts. Time and memory per
node should stay flat: the exponent is the slope of log(time) over log(n), 1 for linear growth. The conventional bag would
have n squared rows.
Features are of a few kinds, so that rows are shared, or continuous, so that every node has its own and none are.
"""

from __future__ import annotations

import argparse
import json
import math
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch

import enfa
from enfa.testing import large_graph

if __name__ == "__main__":
    from common import RESULTS, ROOT, write

BEGIN, END = "<!-- figures: benchmarks/scaling.py -->", "<!-- end of figures -->"
KEYS = ("features", "nodes", "degree", "hub", "hidden")
CHANNELS = 8  # of continuous features
HUB_NODES = 100_000


def _peak() -> float:
    """GiB that this process has ever held."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def measure(nodes: int, hub: int, features: str, degree: int, hidden: int, threads: int) -> dict[str, Any]:
    """One size, in this process. ``features`` is a number of kinds, or "continuous"."""
    torch.set_num_threads(threads)
    torch.manual_seed(0)
    options = {"channels": CHANNELS} if features == "continuous" else {"kinds": int(features)}
    first = CHANNELS if features == "continuous" else [int(features)]
    model = enfa.DSGNN(first, hidden, 4, 2, norm="layer", readout="root")
    for warm_up in (large_graph(2000, degree, **options), large_graph(200, 2, hub=100, **options)):
        model(enfa.make_plan([warm_up], enfa.NodeMarking(), model)).square().mean().backward()
    graph = large_graph(nodes, degree, hub=hub, **options)
    before = _peak()
    found: dict[str, Any] = {"features": features, "nodes": nodes, "degree": degree, "hub": hub, "hidden": hidden}
    found |= {"edges": graph.num_edges, "graph_gib": before}
    start, cpu = time.perf_counter(), time.process_time()
    try:
        plan = enfa.make_plan([graph], enfa.NodeMarking(), model)
    except ValueError as error:
        return {**found, "refused": str(error), "plan_s": time.perf_counter() - start}
    planned = time.perf_counter()
    found |= {"plan_s": planned - start, "plan_gib": _peak()}
    model(plan).square().mean().backward()
    done, used, cost = time.perf_counter(), time.process_time() - cpu, plan.cost()
    return {
        **found, "step_s": done - planned, "cpu_s": used, "peak_gib": _peak(), "rows": cost.rows, "messages": cost.edges,
    }  # fmt: skip


def _in_a_process(arguments: argparse.Namespace, features: str, nodes: int, hub: int) -> dict[str, Any]:
    command = [sys.executable, __file__, "--one", f"{nodes},{hub}", "--features", features]
    for name in ("degree", "hidden", "threads"):
        command += [f"--{name}", str(getattr(arguments, name))]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{nodes} nodes, hub {hub}: {done.stderr.strip() or done.returncode}")
    return json.loads(done.stdout)


def exponent(found: list[dict], name: str) -> float:
    """Slope of log(name) over log(nodes), by least squares."""
    x = [math.log(f["nodes"]) for f in found]
    y = [math.log(max(f[name], 1e-9)) for f in found]
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    return sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y)) / sum((a - mean_x) ** 2 for a in x)


def _line(f: dict) -> str:
    per_node = 1e6 * f["cpu_s"] / f["nodes"]
    kib = 2**20 * (f["peak_gib"] - f["graph_gib"]) / f["nodes"]
    kinds = f["features"] if f["features"] == "continuous" else f"{f['features']} kinds"
    return (
        f"| {kinds} | {f['nodes']:,} | {f['edges']:,} | {f['rows'][0]:,} + {f['rows'][1]:,} | {f['plan_s']:.2f} | "
        f"{f['step_s']:.2f} | {per_node:.0f} | {f['peak_gib']:.2f} | {kib:.1f} |"
    )


def _growth(found: list[dict]) -> str:
    every = [{**f, "CPU time": f["cpu_s"], "memory": f["peak_gib"] - f["graph_gib"]} for f in found]
    large = [f for f in every if f["nodes"] >= 10_000]
    kinds = found[0]["features"]
    powers = " and ".join(f"{name} with n^{exponent(large, name):.2f}" for name in ("CPU time", "memory"))
    return f"{'continuous features' if kinds == 'continuous' else f'{kinds} kinds'}: {powers}"


def _hub(f: dict) -> str:
    kinds = "continuous features" if f["features"] == "continuous" else f"{f['features']} kinds"
    end = f"planned in {f['plan_s']:.1f} s, {f.get('peak_gib', 0):.1f} GiB in all"
    return f"degree {f['hub']:,}, {kinds}: " + (f"refused after {f['plan_s']:.1f} s" if "refused" in f else end)


def figures(path: Path) -> str:
    """The part of docs/policies.md that quotes the results."""
    held = json.loads(path.read_text())
    on, results = held["machine"], held["results"]
    plain = [f for f in results if not f["hub"] and "refused" not in f]
    hubs = [f for f in results if f["hub"]]
    series = [[f for f in plain if f["features"] == kinds] for kinds in dict.fromkeys(f["features"] for f in plain)]
    names = "features", "nodes", "directed edges", "rows, layer 1 + 2", "plan, s", "step, s", "CPU µs per node", "peak GiB"
    lines = [
        "| " + " | ".join((*names, "KiB per node")) + " |",
        "|---|" + "--:|" * 8,
        *(_line(f) for f in sorted(plain, key=lambda f: (f["features"], f["nodes"]))),
        "",
        f"{on['cpu']}, {on['threads']} threads, torch {on['torch']}, the fastest of three runs each; CPU time is that of "
        "both threads, plan and step. From 10^4 nodes on, "
        + "; ".join(_growth(sorted(s, key=lambda f: f["nodes"])) for s in series if len(s) > 2)
        + ".",
    ]
    if hubs:
        lines += ["", f"A hub beside {HUB_NODES:,} other nodes: " + "; ".join(_hub(f) for f in hubs) + "."]
    return "\n".join(lines)


def with_figures(text: str, path: Path) -> str:
    """docs/policies.md with everything between the marks replaced."""
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{figures(path)}\n{END}{rest.split(END)[1]}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--nodes", default="1000,10000,100000,1000000")
    options.add_argument("--hubs", default="20000,50000", help=f"degrees of one extra node, beside {HUB_NODES:,} others")
    options.add_argument("--features", default="4,continuous", help="numbers of kinds, or 'continuous'")
    options.add_argument("--degree", type=int, default=10)
    options.add_argument("--hidden", type=int, default=32)
    options.add_argument("--threads", type=int, default=2)
    options.add_argument("--repeat", type=int, default=3)
    options.add_argument("--out", type=Path, help="result file (default: results/cpu/scaling.json)")
    options.add_argument("--docs", action="store_true", help="write the figures into docs/policies.md")
    options.add_argument("--one", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    if arguments.one:
        nodes, hub = (int(v) for v in arguments.one.split(","))
        rest = {name: getattr(arguments, name) for name in ("features", "degree", "hidden", "threads")}
        print(json.dumps(measure(nodes, hub, **rest)))
        return
    sizes = [(int(v), 0) for v in arguments.nodes.split(",") if v]
    sizes += [(HUB_NODES, int(v)) for v in arguments.hubs.split(",") if v]
    out = arguments.out or RESULTS / "scaling.json"
    for features in arguments.features.split(","):
        for nodes, hub in sizes:
            runs = [_in_a_process(arguments, features, nodes, hub) for _ in range(arguments.repeat)]
            found = min(runs, key=lambda f: f["plan_s"] + f.get("step_s", 0.0))
            print(_hub(found) if hub else _line(found), flush=True)
            write(out, arguments.threads, [found], KEYS)
    if arguments.docs:
        page = ROOT / "docs" / "policies.md"
        page.write_text(with_figures(page.read_text(), out))


if __name__ == "__main__":
    main()
