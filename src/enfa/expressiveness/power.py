"""Which graphs a model class can tell apart, from its rows alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from rich.progress import Progress
from torch import nn
from torch_geometric.data import Data

from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.expressiveness.classes import Layered, join_readings, numbers_of_layers, readings
from enfa.expressiveness.keys import seen_rows
from enfa.expressiveness.models import model_class
from enfa.expressiveness.reading import visible
from enfa.expressiveness.result import Power
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.kinds import distinct_rows
from enfa.plan.check import check_program
from enfa.plan.rows.distinct import StepRows
from enfa.plan.rows.merge import merge_steps

__all__ = ["power"]

_PAIRS = 100_000  # (subgraph, node) pairs that a thread works on at a time: tables that stay in the cache


def power(
    graphs: Sequence[Data],
    policy: Policy,
    model: str | nn.Module | Callable[[int], nn.Module],
    layers: int | Sequence[int] | None = None,
    *,
    pairs: bool = True,
    category: Sequence[str] | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Power:
    """Which graphs some weights of a model class tell apart: exactly those whose rows differ. Nothing is trained.

    Args:
        graphs: pairs, graphs 2p and 2p + 1; with ``pairs=False`` a list, whose graphs are sorted into classes.
        policy: what makes the subgraphs.
        model: a name (:data:`enfa.expressiveness.MODELS`), a callable that makes a model with a number of layers, or a model.
        layers: the largest number of layers, 6 by default: all from 1 are answered; or a list of them. Of a model, its own.
        category: a name for each pair (or graph), by which the table is broken down.
        threads: as many as there are cores, and at most 8, by default.

    A row stands for all that can be computed from what it reads; so graphs whose pools have the same rows have the same output
    whatever the weights, and for others there are weights that give them different ones: those that map different rows, and
    different multisets of them, to different vectors. Sums of MLPs can do that (GIN); means see proportions only and maxima
    which rows there are, and pools (``bag.pool``, ``bag.across``) count as what they are. A conv is taken to keep the multiset
    of messages: for one that averages (GCN, GraphSAGE) the answer is an upper bound.

    Cost: all (subgraph, node) pairs of every layer, once.
    """
    if not isinstance(pairs, bool):
        raise TypeError(f"Expected pairs to be True or False, got {pairs!r}")
    if pairs and len(graphs) % 2:
        raise ValueError(f"Expected pairs of graphs, got {len(graphs)} graphs: use pairs=False for a list")
    if isinstance(model, nn.Module) and layers is not None:
        raise ValueError("Expected no number of layers beside a model, which has its own; a callable makes one of any number")
    checked = check_graphs(graphs)
    made = model_class(model, checked, policy) if isinstance(model, str) else model
    numbers = numbers_of_layers(6 if layers is None else layers)
    found = join_readings(readings(made, numbers, checked, policy))
    edits = edits_by(policy, checked)
    check_program(found.program, checked, edits, repr(policy))
    of_graph = _classes(*visible(checked, edits, found.inputs), found, 2 if pairs else 1, threads, progress)
    name = model if isinstance(model, str) else getattr(model, "__name__", type(model).__name__)
    return Power(repr(policy), name, found.layers, of_graph, pairs, None if category is None else tuple(category))


def _chunks(graphs: GraphSet, edits: Edits, size: int) -> list[np.ndarray]:
    """Runs of graphs, ``size`` of which stay together."""
    weight = np.diff(edits.sub_ptr) * np.diff(graphs.node_ptr)
    part = (np.cumsum(weight) // _PAIRS)[size - 1 :: size].repeat(size)
    return np.split(np.arange(graphs.num_graphs), np.flatnonzero(np.diff(part)) + 1)


def _classes(graphs: GraphSet, edits: Edits, found: Layered, size: int, threads: int | None, progress: bool) -> np.ndarray:
    """int64 [numbers of layers, graphs]: the class of each graph, among all or, in pairs, among the two."""
    chunks = _chunks(graphs, edits, size)

    def work(chunk: np.ndarray) -> list[StepRows]:
        return seen_rows(graphs.subset(chunk), edits.subset(graphs, chunk), found.program, found.kept)

    parts: list[np.ndarray] = []
    merged: list[StepRows] | None = None
    with Progress(disable=not progress) as bar:
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
