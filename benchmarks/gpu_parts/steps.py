"""Milliseconds and memory of one training step."""

from __future__ import annotations

import gc
import time
from typing import Any

import torch

from enfa.nn import GraphedStep
from enfa.plan.prepare import lean, prepare
from gpu_parts.cases import Case, Dataset, loss_for, model_for, plan_for
from gpu_parts.measure import median_ms, work_of

VARIANTS = ("distinct graphed", "distinct eager", "distinct graphed tf32", "distinct graphed bf16", "full", "ego",
            "full compiled")  # fmt: skip


def _free() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def _memory_of_full(plan: Any, case: Case) -> float:
    """Bytes that a conventional step will need, roughly: what is kept of every row for the backward pass."""
    return 4.0 * plan.num_pairs * case.width * case.layers * 9


def measure(case: Case, data: Dataset, policy: str, size: int, variant: str, profile: bool) -> dict[str, Any]:
    """One variant on one batch. Times are CUDA events' around whole steps on a batch that is on the device."""
    kind = variant.split(" ")[0]
    begin = time.perf_counter()
    model = model_for(case, data, "cuda").train()
    plan = plan_for(data, data.batch(size), policy, model.spec, kind)
    if kind != "distinct":
        room = torch.cuda.get_device_properties(0).total_memory * 0.9
        need = _memory_of_full(plan, case)
        if need > room:
            return {"skipped": f"needs about {need / 2**30:.0f} GiB"}
    made = time.perf_counter() - begin
    prepare(plan, model.needs)
    prepared = time.perf_counter() - begin - made
    nbytes, flops = work_of(plan, case, model.encoder.out_channels, sum(p.numel() for p in model.parameters()))
    plan = lean(plan, model.needs)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
    mixed = torch.bfloat16 if variant.endswith("bf16") else None
    torch.set_float32_matmul_precision("high" if variant.endswith("tf32") else "highest")
    graphed = "graphed" in variant
    if variant.endswith("compiled"):
        model.compile()
    step = GraphedStep(model, optimiser, loss_for(data), autocast=mixed, capture=graphed)  # type: ignore[arg-type]
    _free()
    staged = step.stage(plan)
    try:
        step(staged)
        step(staged)
        median, spread = median_ms(lambda: step(staged), 0.6)
        result = {
            "ms": median, "spread_ms": spread, "peak_bytes": torch.cuda.max_memory_allocated(),
            "plan_bytes": staged.block.numel(), "make_s": made, "prepare_s": prepared,
            "bytes": nbytes, "flop": flops, "captured": step.capture,
        }  # fmt: skip
        if profile:
            result["kernels"] = kernels_of(lambda: step(staged))
    except torch.cuda.OutOfMemoryError:
        result = {"skipped": "out of memory"}
    torch.set_float32_matmul_precision("highest")
    return result


def kernels_of(step: Any) -> list[tuple[str, int, float]]:
    """(kernel, launches, microseconds) of one step, by time."""
    activities = [torch.profiler.ProfilerActivity.CUDA]
    try:
        with torch.profiler.profile(activities=activities) as found:
            step()
            torch.cuda.synchronize()
    except RuntimeError as error:  # a machine without the profiler's library still measures
        return [(f"no profile: {error}"[:90], 0, 0.0)]
    rows = [(e.key[:90], e.count, e.self_device_time_total) for e in found.key_averages()]
    return sorted((r for r in rows if r[2] > 0), key=lambda r: -r[2])
