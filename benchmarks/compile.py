"""How fast a dataset is compiled: affected rows looked up per second. Claim: 3 million on two cores.

    python benchmarks/compile.py              # all four datasets, node marking, four layers
    python benchmarks/compile.py --quick

A row is affected if it differs from the row of its node in the unedited graph; the others cost nothing. "rows/s" is the
rate of finding and numbering rows, as the claim means it; "in all" counts checking the graphs and making edits too.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from common import FILES, RESULTS, load, parser, show, write
from enfa import NodeMarking
from enfa.batch.compile import compile_rows
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.plan.make import sources_of_steps
from enfa.report.program import ds_program
from enfa.testing import random_graphs

LAYERS = 4


def measure(name: str, graphs: list[Any], threads: int, repeats: int) -> dict[str, Any]:
    program = ds_program(LAYERS)
    start = time.perf_counter()
    checked = check_graphs(graphs)
    edits = edits_by(NodeMarking(), checked)
    kind = sources_of_steps(checked, edits, program)[1]
    before = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        rows = compile_rows(checked, edits, program, kind, threads=threads)
        times.append(time.perf_counter() - start)
    seconds, layers = float(np.median(times)), rows[1 : LAYERS + 1]
    affected = [layer.affected or 0 for layer in layers]
    return {
        "dataset": name,
        "graphs": len(graphs),
        "layers": LAYERS,
        "pairs": int((np.diff(checked.node_ptr) ** 2).sum()),
        "affected": affected,
        "distinct": [len(layer.keys) for layer in layers],
        "check_s": round(before, 3),
        "compile_s": round(seconds, 3),
        "rows_per_s": round(sum(affected) / seconds),
        "rows_per_s_in_all": round(sum(affected) / (seconds + before)),
    }


def main() -> None:
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "compile")
    options.add_argument("--datasets", nargs="+", choices=list(FILES), default=list(FILES))
    options.add_argument("--repeats", type=int, default=3)
    args = options.parse_args()
    measure("warm-up", random_graphs(4), args.threads, 1)  # numba compiles or reads its cache
    entries = []
    for name in args.datasets:
        graphs = load(name, args.data).graphs
        entries.append(measure(name, graphs[:50] if args.quick else graphs, args.threads, args.repeats))
        print(f"{name}: {entries[-1]['rows_per_s'] / 1e6:.1f} M rows/s", flush=True)
    lines = [
        [e["dataset"], f"{e['graphs']:,}", f"{LAYERS * e['pairs'] / 1e6:,.1f}", f"{sum(e['affected']) / 1e6:,.2f}",
         f"{sum(e['distinct']) / 1e6:,.3f}", f"{e['compile_s']:.2f}", f"{e['rows_per_s'] / 1e6:.1f}",
         f"{e['rows_per_s_in_all'] / 1e6:.1f}"]
        for e in entries
    ]  # fmt: skip
    columns = "dataset", "graphs", "M rows", "M affected", "M distinct", "seconds", "M rows/s", "in all"
    show(f"Compiling: node marking, {LAYERS} layers, {args.threads} threads", columns, lines)
    if args.out or not args.quick:
        write(args.out or RESULTS / "compile.json", args.threads, entries, ["dataset"])


if __name__ == "__main__":
    main()
