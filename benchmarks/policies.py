"""How many rows every policy computes: the conventional model against the distinct plan, on one dataset.

    python benchmarks/policies.py PROTEINS EXP ogbg-moltox21 --root data --write    # NAME.npz there, or as enfa reads it
    python benchmarks/policies.py random                                            # random graphs, without any data

Rows are those of the convs, summed over layers, of the whole dataset compiled at once. Nothing is trained. --write puts them
into results/cpu/policies.json and the table of docs/policies.md.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import enfa
from common import ROOT, stamp
from enfa.datasets import from_npz, load
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet, check_graphs
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import step_rows_of
from enfa.report.machine import machine
from enfa.report.program import ds_program
from enfa.testing import random_graphs

POLICIES: dict[str, Policy] = {
    "NodeMarking()": enfa.NodeMarking(),
    "NodeMarking(distances=2)": enfa.NodeMarking(distances=2),
    "NodeDeletion()": enfa.NodeDeletion(),
    "EdgeDeletion()": enfa.EdgeDeletion(),
    "EdgeMarking()": enfa.EdgeMarking(),
    "EgoNets(2)": enfa.EgoNets(2),
    "EgoNets(2, isolate=True)": enfa.EgoNets(2, isolate=True),
    "EgoNets(3)": enfa.EgoNets(3),
    "EgoNets(3, mark=True)": enfa.EgoNets(3, mark=True),
    "Reconstruction(5, 50)": enfa.Reconstruction(5, max_subgraphs=50),
    "Reconstruction(-2, 50)": enfa.Reconstruction(-2, max_subgraphs=50),
}


RESULT, PAGE = ROOT / "results" / "cpu" / "policies.json", ROOT / "docs" / "policies.md"
BEGIN, END = "<!-- figures: benchmarks/policies.py -->\n", "<!-- end of figures -->"


def measure(graphs: GraphSet, policy: Policy, layers: int) -> dict[str, Any]:
    """Rows of both, the edits that say what the bags are, and seconds of this process."""
    program = ds_program(layers, edges=policy.edge_mark_channels > 0)
    start = time.process_time()
    edits = edits_by(policy, graphs)
    rows = step_rows_of(graphs, edits, program, start_kinds(graphs, program.share)[0])
    return {
        "conventional": layers * int(edits.sizes(graphs).sum()),
        "distinct": sum(len(layer.keys) for layer in rows[1 : layers + 1]),
        "edits": len(edits.node) + len(edits.edge), "cpu_s": round(time.process_time() - start, 2),
    }  # fmt: skip


def figures(found: dict[str, Any]) -> str:
    """The page's table."""
    by = {(one["dataset"], one["policy"]): one for one in found["results"]}
    datasets = list(dict.fromkeys(dataset for dataset, _ in by))
    lines = [f"| policy | {' | '.join(datasets)} |", "|---|" + "--:|" * len(datasets)]
    for name in dict.fromkeys(policy for _, policy in by):
        each = [by[dataset, name] for dataset in datasets]
        lines.append(f"| `{name}` | " + " | ".join(f"{e['conventional'] / e['distinct']:.1f}×" for e in each) + " |")
    return "\n".join(lines) + "\n"


def with_figures(page: str, found: dict[str, Any]) -> str:
    before, rest = page.split(BEGIN)
    return before + BEGIN + figures(found) + END + rest.split(END, 1)[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--root", default="data")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--graphs", type=int, default=1000, help="take so many")
    parser.add_argument("--write", action="store_true", help="into results/cpu/policies.json and docs/policies.md")
    arguments = parser.parse_args()
    found: list[dict[str, Any]] = []
    for name in arguments.datasets:
        every: Iterable[Any] = random_graphs(arguments.graphs, 40)
        if name != "random":
            file = Path(arguments.root) / f"{name.replace('-', '_')}.npz"
            data = from_npz(file, name=name) if file.exists() else load(name, arguments.root)
            every = data.graphs[: arguments.graphs]
        graphs = check_graphs(every)
        print(f"\n{name}: {graphs.num_graphs} graphs, {graphs.num_nodes} nodes, {arguments.layers} layers")
        print("| policy | conventional rows | distinct rows | fewer by | CPU s |\n|---|---|---|---|---|")
        for title, policy in POLICIES.items():
            one = measure(graphs, policy, arguments.layers)
            rows = f"{one['conventional']:,} | {one['distinct']:,} | {one['conventional'] / one['distinct']:.1f}"
            print(f"| {policy!r} | {rows} | {one['cpu_s']:.1f} |", flush=True)
            found.append({"dataset": name, "graphs": graphs.num_graphs, "layers": arguments.layers, "policy": title, **one})
    if arguments.write:
        whole = {"machine": machine(), **stamp(), "results": found}
        RESULT.write_text(json.dumps(whole, indent=1) + "\n")
        PAGE.write_text(with_figures(PAGE.read_text(), whole))


if __name__ == "__main__":
    main()
