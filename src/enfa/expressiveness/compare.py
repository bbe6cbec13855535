"""Comparing graphs by what a model class pools of them, many at a time."""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from rich.console import Console
from rich.progress import Progress

from enfa.edits import Edits
from enfa.expressiveness.classes import Layered
from enfa.expressiveness.keys import seen_rows
from enfa.graphs import GraphSet
from enfa.graphs.kinds import distinct_rows
from enfa.plan.rows.distinct import StepRows
from enfa.plan.rows.merge import merge_steps

__all__ = ["classes_of"]

PAIRS = 100_000  # (subgraph, node) pairs that a thread works on at a time: tables that stay in the cache


def _chunks(graphs: GraphSet, edits: Edits, size: int) -> list[np.ndarray]:
    """Runs of graphs, ``size`` of which stay together."""
    weight = np.diff(edits.sub_ptr) * np.diff(graphs.node_ptr)
    part = (np.cumsum(weight) // PAIRS)[size - 1 :: size].repeat(size)
    return np.split(np.arange(graphs.num_graphs), np.flatnonzero(np.diff(part)) + 1)


def classes_of(graphs: GraphSet, edits: Edits, found: Layered, size: int, threads: int | None, progress: bool) -> np.ndarray:
    """int64 [numbers of layers, graphs]: the class of each graph, among all or, in pairs, among the two."""
    chunks = _chunks(graphs, edits, size)

    def work(chunk: np.ndarray) -> list[StepRows]:
        return seen_rows(graphs.subset(chunk), edits.subset(graphs, chunk), found.program, found.kept)

    parts: list[np.ndarray] = []
    merged: list[StepRows] | None = None
    with Progress(console=Console(stderr=True), disable=not progress) as bar:
        task = bar.add_task("comparing", total=graphs.num_graphs)
        for chunk, rows in zip(chunks, _in_threads(work, chunks, threads)):
            if size > 1:
                parts.append(_signatures(rows, found))
            elif merged is None:
                merged = rows
            else:
                merge_steps(merged, rows, found.program)
            bar.update(task, advance=len(chunk))
    if merged is not None:
        return _signatures(merged, found)
    together = np.concatenate(parts, 1) if parts else np.zeros((len(found.layers), 0), np.int64)
    together[:, 1::2] = together[:, 0::2] != together[:, 1::2]
    together[:, 0::2] = 0
    return together


def _signatures(rows: list[StepRows], found: Layered) -> np.ndarray:
    """int64 [numbers of layers, graphs]: equal where all that is pooled to graphs is."""
    signatures = []
    for steps in found.outputs:
        pooled = np.stack([np.asarray(rows[step].place, np.int64) for step in steps], 1)
        signatures.append(distinct_rows(pooled)[0])
    return np.stack(signatures)


def _in_threads(
    work: Callable[[np.ndarray], list[StepRows]], chunks: list[np.ndarray], threads: int | None
) -> Iterator[list[StepRows]]:
    """In order, a few ahead: kernels release the GIL."""
    count = threads or min(os.cpu_count() or 1, 8)
    with ThreadPoolExecutor(count) as pool:
        waiting = [pool.submit(work, chunk) for chunk in chunks[: count + 1]]
        for number in range(len(chunks)):
            rows = waiting.pop(0).result()
            if number + count + 1 < len(chunks):
                waiting.append(pool.submit(work, chunks[number + count + 1]))
            yield rows
