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
from enfa import NodeMarking, Spec
from enfa.batch.rows import compile_graphs
from enfa.graphs import check_graphs
from enfa.plan.make import edits_of, sources_of
from enfa.testing import random_graphs

LAYERS = 4


def measure(name: str, graphs: list[Any], threads: int, repeats: int) -> dict[str, Any]:
    spec, policy = Spec(LAYERS), NodeMarking()
    start = time.perf_counter()
    checked = check_graphs(graphs)
    edits = edits_of(checked, policy, spec)
    kind = sources_of(checked, edits, spec)[1]
    before = time.perf_counter() - start
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        rows = compile_graphs(checked, edits, spec, kind, threads=threads)
        times.append(time.perf_counter() - start)
    seconds, affected = float(np.median(times)), sum(rows.affected)
    return {
        "dataset": name,
        "graphs": len(graphs),
        "layers": LAYERS,
        "pairs": int((np.diff(checked.node_ptr) ** 2).sum()),
        "affected": rows.affected,
        "distinct": [len(layer.rows) for layer in rows.layers],
        "check_s": round(before, 3),
        "compile_s": round(seconds, 3),
        "rows_per_s": round(affected / seconds),
        "rows_per_s_in_all": round(affected / (seconds + before)),
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
