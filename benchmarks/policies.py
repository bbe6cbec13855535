"""How many rows every policy computes: the conventional model against the distinct plan, on one dataset.

    python benchmarks/policies.py PROTEINS EXP --root data     # a dataset by name, fetched or laid out under data/
    python benchmarks/policies.py random                       # random graphs, without any data

Rows are those of the convs, summed over layers, of the whole dataset compiled at once. Nothing is trained.
"""

from __future__ import annotations

import argparse
import time

import enfa
import enfa.datasets
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet, check_graphs
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import step_rows_of
from enfa.report.program import ds_program
from enfa.testing import random_graphs

POLICIES: list[Policy] = [
    enfa.NodeMarking(),
    enfa.NodeMarking(distances=2),
    enfa.NodeDeletion(),
    enfa.EdgeDeletion(),
    enfa.EdgeMarking(),
    enfa.EgoNets(2),
    enfa.EgoNets(2, isolate=True),
    enfa.EgoNets(3),
    enfa.EgoNets(3, mark=True),
    enfa.Reconstruction(5, max_subgraphs=50),
    enfa.Reconstruction(-2, max_subgraphs=50),
]


def measure(graphs: GraphSet, policy: Policy, layers: int) -> tuple[int, int, float]:
    """(conventional rows, distinct rows, seconds)."""
    program = ds_program(layers, edges=policy.edge_mark_channels > 0)
    start = time.perf_counter()
    edits = edits_by(policy, graphs)
    rows = step_rows_of(graphs, edits, program, start_kinds(graphs, program.share)[0])
    return (
        layers * int(edits.sizes(graphs).sum()),
        sum(len(layer.keys) for layer in rows[1 : layers + 1]),
        time.perf_counter() - start,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="+")
    parser.add_argument("--root", default="data")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--graphs", type=int, default=1000, help="take so many")
    arguments = parser.parse_args()
    for name in arguments.datasets:
        if name == "random":
            every = random_graphs(arguments.graphs, 40)
        else:
            every = enfa.datasets.load(name, arguments.root).graphs[: arguments.graphs]
        graphs = check_graphs(every)
        print(f"\n{name}: {graphs.num_graphs} graphs, {graphs.num_nodes} nodes, {arguments.layers} layers")
        print("| policy | conventional rows | distinct rows | fewer by | compiled in s |\n|---|---|---|---|---|")
        for policy in POLICIES:
            conventional, distinct, seconds = measure(graphs, policy, arguments.layers)
            print(f"| {policy!r} | {conventional:,} | {distinct:,} | {conventional / distinct:.1f} | {seconds:.1f} |",
                  flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
