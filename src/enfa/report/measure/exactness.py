"""How far ego and distinct are from the conventional model: outputs, gradients, BatchNorm, weights after training."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets import Benchmark
from enfa.plan.make import KINDS, make_plan
from enfa.report.data import Source
from enfa.report.measure.model import build
from enfa.report.settings import POLICIES, Settings
from enfa.report.store import Store
from enfa.testing import differences

__all__ = ["QUANTITIES", "TOLERANCE", "is_exact", "measure_exactness"]

TOLERANCE = 1e-10  # relative, float64: the package's promise
QUANTITIES = {"output": "outputs", "gradient": "gradients", "buffer": "BatchNorm", "weight": "weights"}
MODELS = {"DS": None, "DSS": "dss"}


def is_exact(result: dict[str, Any]) -> bool:
    """Whether float64 differences keep the promise, and float32 comes as close to the truth as full float32 does."""
    worst = max(v for kinds in result["float64"].values() for v in kinds.values())
    own = result["float32_from_truth"]
    # two roundings of the same sum differ by a few units in the last place even where neither is the better one
    return worst <= TOLERANCE and own["distinct"] <= max(4 * own["full"], 1e-5)


def _graphs(data: Benchmark, settings: Settings) -> list[Data]:
    """Sampled graphs, as many as fit into ``exact_rows`` (subgraph, node) pairs under node marking; at least two."""
    chosen, rows = [], 0
    for i in settings.sample(data, 8 * settings.exact_graphs):
        more = int(data.graphs[i].num_nodes) ** 2
        if len(chosen) < settings.exact_graphs and (rows + more <= settings.exact_rows):
            chosen.append(data.graphs[i])
            rows += more
    if len(chosen) < 2:
        by_size = sorted(settings.sample(data, 64), key=lambda i: data.graphs[i].num_nodes)
        chosen = [data.graphs[i] for i in by_size[:2]]
    return chosen


def _from_truth(model: torch.nn.Module, policy: str, graphs: list[Data]) -> dict[str, float]:
    """Distance of each plan's float32 outputs from the full plan's float64 outputs, relative to the largest."""
    plans = {kind: make_plan(graphs, POLICIES[policy](), model.spec, kind) for kind in KINDS}  # type: ignore[arg-type]
    with torch.no_grad():
        truth = copy.deepcopy(model).double().train()(plans["full"])
        scale = float(truth.abs().max()) or 1.0
        return {
            kind: float((copy.deepcopy(model).train()(plan).double() - truth).abs().max()) / scale
            for kind, plan in plans.items()
        }


def _one(data: Benchmark, policy: str, context: str | None, settings: Settings) -> dict[str, Any]:
    graphs = _graphs(data, settings)
    model = build(data, settings.exact_width, settings.exact_layers, "gin", context, jk="concat")
    result: dict[str, Any] = {
        "graphs": len(graphs),
        "nodes": int(np.sum([g.num_nodes for g in graphs])),
        "layers": settings.exact_layers,
        "width": settings.exact_width,
        "steps": settings.exact_steps,
        "float32_from_truth": _from_truth(model, policy, graphs),
    }
    model = model.to(settings.device)
    for dtype in (torch.float64, torch.float32):
        worst: dict[str, dict[str, float]] = {}
        found = differences(model, POLICIES[policy](), graphs, dtype=dtype, steps=settings.exact_steps)
        for d in found:
            # what training led to is one quantity: weights, and the outputs that they give
            kinds = worst.setdefault("weight" if " after " in d.what else d.what.split(" ")[0], {})
            kinds[d.kind] = max(kinds.get(d.kind, 0.0), min(d.relative, 1e300))  # JSON has no infinity
        result[str(dtype).removeprefix("torch.")] = worst
    return result


def measure_exactness(source: Source, settings: Settings, store: Store) -> Iterator[str]:
    """Fill the section "exactness"; yields each key when it is done."""
    for dataset in settings.datasets:
        for policy in POLICIES:
            for name, context in MODELS.items():
                key = f"{dataset} | {policy} | {name}"
                store.compute(
                    "exactness", key,
                    lambda d=dataset, p=policy, c=context: _one(source(d), p, c, settings),  # type: ignore[misc]
                )  # fmt: skip
                yield key
