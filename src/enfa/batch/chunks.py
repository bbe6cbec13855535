"""Many graphs, compiled chunk by chunk by several threads."""

import os
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.rows.distinct import StepRows, step_rows_of
from enfa.plan.step import Program

__all__ = ["in_chunks"]

_MOST, _LEAST = 3_000_000, 250_000  # about how many affected rows a thread works on at a time


def _chunks(graphs: GraphSet, edits: Edits, threads: int) -> list[np.ndarray]:
    """Runs of graphs with about as many affected rows each, 24 per subgraph or all its nodes: one for every thread at least,
    if it is worth a thread."""
    weight = np.diff(edits.sub_ptr) * np.minimum(np.diff(graphs.node_ptr), 24)
    behind = np.cumsum(weight)
    total = int(behind[-1]) if len(behind) else 0
    count = max(-(-total // _MOST), min(threads, total // _LEAST), 1)
    part = np.minimum((behind - weight // 2) * count // max(total, 1), count - 1)  # where the middle of a graph lies
    return np.split(np.arange(graphs.num_graphs), np.flatnonzero(np.diff(part)) + 1)


def in_chunks(
    graphs: GraphSet, edits: Edits, program: Program, kind: np.ndarray, progress: bool, threads: int | None
) -> Iterator[list[StepRows]]:
    """The rows of every step, chunk by chunk, in order, by several threads (the kernels release the GIL)."""
    threads = threads or min(os.cpu_count() or 1, 8)
    chunks = _chunks(graphs, edits, threads)
    columns = (TextColumn("compiling"), BarColumn(), TextColumn("{task.completed} of {task.total} graphs"),
               TextColumn("{task.fields[rate]}"), TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip

    def work(chunk: np.ndarray) -> list[StepRows]:
        nodes = slice(graphs.node_ptr[chunk[0]], graphs.node_ptr[chunk[-1] + 1])
        if len(chunks) == 1:
            return step_rows_of(graphs, edits, program, kind)
        return step_rows_of(graphs.subset(chunk), edits.subset(graphs, chunk), program, kind[nodes])

    with Progress(*columns, console=Console(stderr=True), disable=not progress) as bar, ThreadPoolExecutor(threads) as pool:
        task = bar.add_task("", total=graphs.num_graphs, rate="")
        waiting: list[Future[list[StepRows]]] = [pool.submit(work, chunk) for chunk in chunks[: threads + 1]]
        affected = 0
        for i, chunk in enumerate(chunks):
            rows = waiting.pop(0).result()
            if i + threads + 1 < len(chunks):  # memory: never more than threads + 2 chunks at a time
                waiting.append(pool.submit(work, chunks[i + threads + 1]))
            affected += sum(len(found.keys) for found in rows)
            yield rows
            seconds = max(bar.tasks[task].elapsed or 0.0, 1e-9)
            bar.update(task, advance=len(chunk), rate=f"{affected / seconds / 1e6:.1f} M rows/s")
