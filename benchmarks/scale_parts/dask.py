"""A Dask cluster of one worker, and of two."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from scale_parts.zinc import compiled, zinc

SIZE = 2_000


def two_workers(data: Path, folder: Path, graphs: int) -> dict[str, Any]:
    """Seconds with one and with two, the start of the workers not counted, and whether the folders are the same."""
    from distributed import Client
    from distributed.deploy.subprocess import SubprocessCluster

    stream, size, seconds, bytes_of = zinc(str(data), graphs), min(SIZE, graphs // 8), {}, {}
    for workers in (1, 2):
        cluster = SubprocessCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0", silence_logs=40)
        with cluster, Client(cluster) as client:
            # every worker has imported and loaded all it needs
            compiled(zinc(str(data), 40 * workers), str(folder / f"warm-{workers}"), 10, engine=client)
            start = time.perf_counter()
            compiled(stream, str(folder / str(workers)), size, engine=client)
            seconds[workers] = time.perf_counter() - start
        bytes_of[workers] = {path.name: path.read_bytes() for path in (folder / str(workers)).iterdir()}
    compiled(stream, str(folder / "local"), size, workers=2)
    local = {path.name: path.read_bytes() for path in (folder / "local").iterdir()}
    return {
        "one_s": round(seconds[1], 2), "two_s": round(seconds[2], 2), "ratio": round(seconds[1] / seconds[2], 2),
        "same": bytes_of[1] == bytes_of[2] == local,
    }  # fmt: skip
