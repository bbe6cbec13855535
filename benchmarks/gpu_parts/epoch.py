"""A shuffled epoch end to end (slicing by workers, transfer, captured steps) against the sum of its steps.

What counts is the sustained rate. Workers keep batches ready, three each, so the first epochs after a pause run from stock,
faster than batches are made; and an epoch that meets a bucket for the first or second time runs a step eagerly, or captures
one, which takes a second, in which the stock fills up again. So epochs are timed one after the other, those with such a step
are left out and counted (``left_out``), and so are those that begin less than SETTLED steps after one, or after the beginning.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import enfa
from enfa.batch.loader import default_workers
from enfa.batch.static.packed import PackedLoader
from enfa.nn import Step
from gpu_parts.cases import POLICIES, Case, Dataset, loss_for, model_for

MOST = 60  # batches of an epoch
STEPS = 400  # timed, at least, unless there are too many epochs
SETTLED = 60  # steps until the stock is used up: more than 15 workers keep ready
EPOCHS = 300  # at most
WARM = 20  # epochs at most, until every bucket has been met twice


def _loader(data: Dataset, policy: str, model: Any, batch: int, workers: int) -> tuple[PackedLoader, float]:
    """And the seconds that compiling took."""
    chosen = np.sort(np.random.RandomState(0).permutation(len(data))[: MOST * batch])
    graphs = [data.graph(g) for g in chosen]
    begin = time.perf_counter()
    compiled = enfa.compile(graphs, POLICIES[policy](), model, progress=False)
    compiled.y = data.targets(chosen)
    seconds = time.perf_counter() - begin
    return PackedLoader(compiled, None, batch, True, workers, pin=True), seconds


def _timed(loader: PackedLoader, step: Step | None) -> float:
    """Seconds of an epoch; without a step, of making its batches alone."""
    torch.cuda.synchronize()
    begin = time.perf_counter()
    for packed in loader:
        if step is not None:
            step(packed)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def sustained(timed: Callable[[], float], busy: Callable[[], int], batches: int) -> tuple[list[float], int]:
    """Seconds of the epochs that count, and how many were left out because of a step that was not replayed.

    ``timed`` runs an epoch of so many batches and returns its seconds; ``busy`` counts the steps so far that were not replayed.
    """
    found: list[float] = []
    left_out = since = 0
    for _ in range(EPOCHS):
        before, settled = busy(), since >= SETTLED
        seconds = timed()
        since += batches
        if busy() > before:
            left_out, since = left_out + 1, 0
        elif settled:
            found.append(seconds)
        if len(found) >= 3 and len(found) * batches >= STEPS:
            break
    return found, left_out


def _steps_ms(loader: PackedLoader, step: Step) -> tuple[float, int]:
    """Milliseconds of the captured steps of an epoch, batches in device memory, and how many there are."""
    waiting = []
    for packed in loader:
        found = step.captured.get(packed.bucket)
        if found is not None:
            waiting.append((found, packed.block.cuda()))  # type: ignore[union-attr]
    times = []
    for _ in range(3):
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        start.record()
        for found, block in waiting:
            found.block.copy_(block)
            found.graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(start.elapsed_time(end))
    return min(times), len(waiting)


def epoch(case: Case, data: Dataset, policy: str, batch: int, workers: int | None = None) -> dict[str, Any]:
    """Epochs until none runs a step eagerly any more, then as many as it takes for a sustained rate, as said above."""
    gc.collect()
    torch.cuda.empty_cache()
    workers = default_workers() if workers is None else workers
    model = model_for(case, data, "cuda").train()
    begin = time.perf_counter()
    loader, compile_s = _loader(data, policy, model, batch, workers)
    made = time.perf_counter() - begin
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
    step = Step(model, optimiser, loss_for(data))  # type: ignore[arg-type]
    first: list[float] = []
    before = -1
    while len(first) < 3 or (step.eager_steps > before and len(first) < WARM):
        before = step.eager_steps
        first.append(_timed(loader, step))

    def busy() -> int:
        return step.eager_steps + sum(found is not None for found in step.captured.values())

    seconds, left_out = sustained(lambda: _timed(loader, step), busy, len(loader))
    alone = _timed(loader, None)
    ms, replayed = _steps_ms(loader, step)
    loader.close()
    if not seconds:
        raise RuntimeError(f"Expected epochs in which every step is replayed, got none in {EPOCHS}")
    each = sum(seconds) / len(seconds) / len(loader)
    return {
        "batches": len(loader), "workers": workers, "buckets": str(loader.buckets), "captured": step.capture,
        "block_mb": [round(b.nbytes / 1e6, 1) for b in loader.buckets.all], "unpadded": loader.unpadded,
        "left_out": left_out, "compile_s": compile_s, "ready_s": made, "first_epochs_s": first,
        "epoch_s": seconds, "batches_alone_s": alone, "steps_ms": ms, "replayed": replayed,
        "epoch_ms_per_step": 1e3 * each, "timed_steps": len(seconds) * len(loader),
        "ratio": 1e3 * each / (ms / max(replayed, 1)),
    }  # fmt: skip


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['case']:14}{row['batch']:4} {row['policy']:14}"
    if "ratio" not in row:
        return head + row.get("error", "")[-200:]
    step = row["steps_ms"] / max(row["replayed"], 1)
    return head + (
        f"{row['epoch_ms_per_step']:.3f} ms per step in epochs of {row['batches']}, alone {step:.3f} ms, ratio "
        f"{row['ratio']:.2f}; "
        f"batches alone {1e3 * row['batches_alone_s'] / row['batches']:.3f} ms each by {row['workers']} workers; "
        f"{row['buckets']}; unpadded {row['unpadded']}, {row['left_out']} epochs left out"
    )
