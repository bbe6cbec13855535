"""Q3 and Q4: training time and peak memory of conventional, ego and distinct."""

import gc
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from enfa.batch.dataset import CompiledDataset
from enfa.datasets import Benchmark
from enfa.nn.bag import compile
from enfa.nn.models.base import SubgraphGNN
from enfa.plan.check import KINDS
from enfa.plan.table import Plan
from enfa.report.data import Source
from enfa.report.measure.batch_size import data_bytes, largest_within
from enfa.report.measure.memory import does_not_fit, estimate, free_bytes, peak_bytes
from enfa.report.measure.model import build, make_step
from enfa.report.measure.store import Store
from enfa.report.settings import DATASETS, POLICIES, Settings

__all__ = ["Case", "cases", "measure_time"]


class Case(NamedTuple):
    """One setting, in which all three plans are timed."""

    dataset: str
    policy: str
    conv: str
    context: bool
    layers: int
    method: str  # "same batch", or "same data": the paper's

    @property
    def key(self) -> str:
        return " | ".join(map(str, self))


def cases(settings: Settings) -> Iterator[Case]:
    """The settings that are timed: GIN at the same batch size first, then its variants."""
    for dataset in settings.datasets:
        for policy in POLICIES:
            for layers in settings.layers:
                yield Case(dataset, policy, "gin", False, layers, "same batch")
            for layers in settings.variant_layers:
                yield Case(dataset, policy, "gin", False, layers, "same data")
                for conv, context in (("gin", True), (DATASETS[dataset], False), (DATASETS[dataset], True)):
                    yield Case(dataset, policy, conv, context, layers, "same batch")


def _batch(compiled: CompiledDataset, settings: Settings) -> int:
    """The baseline's batch size, halved while its bags are larger than the settings allow."""
    pairs = np.diff(np.concatenate([[0], np.cumsum(compiled.sub_size)])[compiled.sub_ptr])
    batch = min(settings.batch, len(pairs))
    while settings.batch_rows and batch > 1 and pairs[:batch].sum() > settings.batch_rows:
        batch //= 2
    return batch


def _timed(steps: dict[str, Callable[[], object]], settings: Settings) -> dict[str, list[float]]:
    """Milliseconds of each step, taken in turn so that a disturbance strikes all plans alike."""
    times: dict[str, list[float]] = {kind: [] for kind in steps}
    for step in steps.values():
        step()  # fills the plan's caches, and on a GPU captures
    began = time.perf_counter()
    for done in range(settings.repeats):
        if done >= 3 and time.perf_counter() - began > settings.seconds:
            break
        for kind, step in steps.items():
            if settings.device == "cuda":
                torch.cuda.synchronize()
            start = time.perf_counter()
            step()
            if settings.device == "cuda":
                torch.cuda.synchronize()
            times[kind].append(1e3 * (time.perf_counter() - start))
    return times


def _plans(data: Benchmark, case: Case, settings: Settings, model: SubgraphGNN) -> Iterator[tuple[Plan, float, int]]:
    """Plan, milliseconds to make it, and bytes of its batch's data, for each kind."""
    same_data = case.method == "same data"
    order = settings.sample(data, settings.largest_batch if same_data else settings.batch)
    graphs = [data.graphs[i] for i in order]
    attributes = 0 if graphs[0].edge_attr is None else graphs[0].edge_attr.shape[1]
    first = allowed = 0
    for kind in KINDS:
        compiled = compile(graphs, POLICIES[case.policy](), model, progress=False, kind=kind, threads=settings.threads)
        batch = first = first or _batch(compiled, settings)
        if same_data and kind != "full":
            batch = largest_within(lambda b: data_bytes(compiled, b, attributes), first, len(graphs), allowed)  # noqa: B023
        start = time.perf_counter()
        plan = compiled[np.arange(batch)]
        load = 1e3 * (time.perf_counter() - start)
        size = data_bytes(compiled, np.arange(batch), attributes)
        allowed = allowed or size
        yield plan, load, size


def epoch_seconds(graphs: int, plan: dict[str, Any], device: str) -> float:
    """An epoch's steps; on a CPU, which both need, also the making of its batches."""
    batches = -(-graphs // plan["batch"])
    return batches * (plan["ms"] + (plan["load_ms"] if device == "cpu" else 0.0)) / 1e3


def _one(data: Benchmark, case: Case, settings: Settings) -> dict[str, Any]:
    """Rows, bytes, batch, ms per step and peak memory by plan; why not, where one does not fit."""
    width, context = settings.width_of(case.dataset), "mpnn" if case.context else None
    traced = build(data, width, case.layers, case.conv, context)
    limit = int(settings.memory_gb * 1e9) if settings.memory_gb else free_bytes(settings.device)
    result: dict[str, Any] = {"graphs": len(data.graphs), "width": width, "plans": {}}
    steps: dict[str, Callable[[], object]] = {}
    for plan, load, size in _plans(data, case, settings, traced):
        found: dict[str, Any] = {
            "batch": plan.num_graphs, "load_ms": load, "rows": plan.cost().rows, "data_bytes": size,
        }  # fmt: skip
        result["plans"][plan.kind] = found
        need = estimate(max(found["rows"]), width, case.layers, case.context)
        try:
            if need > limit:
                raise MemoryError
            model = build(data, width, case.layers, case.conv, context).to(settings.device)
            step = make_step(model, plan)
            step()
            found["peak_bytes"] = peak_bytes(step, settings.device)
            steps[plan.kind] = step
        except (MemoryError, RuntimeError) as error:
            if not does_not_fit(error):
                raise
            found["does_not_fit"] = {"needs_bytes": need, "limit_bytes": limit}
    for kind, times in _timed(steps, settings).items():
        found = result["plans"][kind]
        low, middle, high = (float(v) for v in np.quantile(times, (0.25, 0.5, 0.75)))
        found.update(ms=middle, ms_low=low, ms_high=high, repeats=len(times))
        found["epoch_s"] = epoch_seconds(len(data.graphs), found, settings.device)
    return result


def _alone(data: Benchmark, case: Case, settings: Settings) -> dict[str, Any]:
    """One case, of which nothing stays for the next one."""
    result = _one(data, case, settings)
    if settings.device == "cuda":  # captured steps hold on to their memory
        gc.collect()
        gc.freeze()  # datasets are a hundred thousand objects, in which to search for garbage takes as long as many a case
        torch.cuda.empty_cache()
    return result


def measure_time(source: Source, settings: Settings, store: Store) -> Iterator[str]:
    """Fill the section "time"; yields the key of each case when it is done."""
    for case in cases(settings):
        store.compute("time", case.key, lambda case=case: _alone(source(case.dataset), case, settings))  # type: ignore[misc]
        yield case.key
