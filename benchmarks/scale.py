"""Compiling datasets that do not fit into memory: shard by shard, with two processes.

    python benchmarks/scale.py                          # ZINC-full, kills, Dask
    python benchmarks/scale.py --parts zinc --graphs 50000
    python benchmarks/scale.py --millions               # 4 million molecule-like graphs: hours, and 20 GB on disk
    python benchmarks/scale.py --millions --graphs 50000 --keep millions        # goes on, where it was interrupted
    python benchmarks/scale.py --quick

Node marking, 6 layers, GINE. Claims: ZINC-full (249,456 molecules) in 150 s and 4 GiB of all processes together; millions in
4 GiB, at a rate that the last shards keep within 20% of the first; whatever is killed (a worker, or the whole compile, with
SIGKILL at ten places each), the folder holds the same bytes in the end; two Dask workers are 1.7 times as fast as one.
Memory is that of each process with its share of common pages, sampled four times a second and added up.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from common import RESULTS, data_folder, parser, show, write
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import Manifest
from scale_parts.dask import two_workers
from scale_parts.kills import kills
from scale_parts.watching import rates, watched
from scale_parts.zinc import compile_millions, compile_zinc

SIZES = {"zinc": 249_456, "millions": 4_000_000, "kills": 4_000, "dask": 40_000}
QUICK = {"zinc": 600, "millions": 600, "kills": 200, "dask": 400}


def _watched(work: Callable[..., Any], args: Any, graphs: int, folder: Path) -> dict[str, Any]:
    """A compile into ``folder``, which may hold some of it."""
    size = args.shard_size
    found, clock = watched(work, str(data_folder(args.data)), str(folder), graphs, args.workers, size)
    manifest = Manifest.read(Folder(folder))
    counts = {shard.file: shard.graphs for shard in manifest.shards}
    windows, by_cpu = rates(folder, counts, min(20, max(len(counts) // 4, 1)), clock)
    return {
        "workers": args.workers, "shard_size": size, "shards": len(counts), **{k: round(v, 2) for k, v in found.items()},
        "graphs_per_s": round(graphs / found["seconds"]), "graphs_per_cpu_s": round(graphs / found["cpu_s"]),
        "bytes": sum(shard.bytes for shard in manifest.shards), "rows": sum(sum(shard.rows) for shard in manifest.shards),
        "rates": windows, "last_to_first": round(windows[-1] / windows[0], 2),
        "cpu_rates": by_cpu, "cpu_last_to_first": round(by_cpu[-1] / by_cpu[0], 2),
    }  # fmt: skip


def main() -> None:
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "scale")
    options.add_argument("--parts", default="zinc,kills,dask", help="zinc, millions, kills, dask, with commas between them")
    options.add_argument("--millions", action="store_true", help="the part of 4 million graphs, and no other")
    options.add_argument("--graphs", type=int, help="fewer graphs than the part has")
    options.add_argument("--workers", type=int, default=2)
    options.add_argument("--shard-size", type=int, default=5_000)
    options.add_argument("--keep", type=Path, help="where shards go and stay; by default a folder that is removed")
    args = options.parse_args()
    parts, entries = ["millions"] if args.millions else args.parts.split(","), []
    if args.quick:
        args.shard_size = 100
    with nullcontext(args.keep) if args.keep else tempfile.TemporaryDirectory() as folder:
        for part in parts:
            graphs = args.graphs or (QUICK if args.quick else SIZES)[part]
            graphs, out = min(graphs, SIZES[part]), Path(folder) / part
            if part in ("zinc", "millions"):
                found = _watched(compile_zinc if part == "zinc" else compile_millions, args, graphs, out)
            else:
                found = (kills if part == "kills" else two_workers)(data_folder(args.data), out, graphs)
            entries.append({"part": part, "graphs": graphs, **found})
            lines = [[key, str(value)] for key, value in entries[-1].items()]
            show(part, ("", "value"), lines)
            if args.out or not args.quick:
                write(args.out or RESULTS / "scale.json", args.threads, entries[-1:], ["part", "graphs"])


if __name__ == "__main__":
    main()
