"""Milliseconds and memory of one training step."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import torch
from torch import nn

from enfa.nn import Step
from enfa.plan.derived.prepare import lean, prepare
from gpu_parts.cases import Case, Dataset, loss_for, model_for, plan_for
from gpu_parts.measure import median_ms, plain_operators, work_of

VARIANTS = ("distinct graphed", "distinct eager", "distinct graphed tf32", "distinct graphed bf16", "full", "ego",
            "full compiled")  # fmt: skip


def _free() -> None:
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def _memory_of_full(plan: Any, case: Case) -> float:
    """Bytes that a conventional step will need, roughly: what is kept of every row for the backward pass."""
    return 4.0 * plan.num_pairs * case.width * case.layers * 9


def _compiled(model: nn.Module, plan: Any, optimiser: torch.optim.Optimizer, loss: Any) -> Callable[[], object]:
    """A step of what torch.compile makes of plain operators: our own kernels it would only call."""
    plan = plan.to("cuda")

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        loss(model(plan), plan.y).backward()
        optimiser.step()

    step()  # fills the plan's caches, which is done on the CPU and cannot be traced
    model.compile()
    return step


def measure(case: Case, data: Dataset, policy: str, size: int, variant: str, profile: bool) -> dict[str, Any]:
    """One variant on one batch. Times are CUDA events' around whole steps on a batch that is on the device."""
    with plain_operators() if variant.endswith("compiled") else nullcontext():
        return _measure(case, data, policy, size, variant, profile)


def _measure(case: Case, data: Dataset, policy: str, size: int, variant: str, profile: bool) -> dict[str, Any]:
    kind = variant.split(" ")[0]
    begin = time.perf_counter()
    model = model_for(case, data, "cuda").train()
    plan = plan_for(data, data.batch(size), policy, model, kind)
    if kind != "distinct":
        room = torch.cuda.get_device_properties(0).total_memory * 0.9
        need = _memory_of_full(plan, case)
        if need > room:
            return {"skipped": f"needs about {need / 2**30:.0f} GiB"}
    made = time.perf_counter() - begin
    needs = plan.program.needs
    prepare(plan, needs)
    prepared = time.perf_counter() - begin - made
    nbytes, flops = work_of(plan, case, model.encoder.out_channels, sum(p.numel() for p in model.parameters()))
    compiled = variant.endswith("compiled")
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
    mixed = torch.bfloat16 if variant.endswith("bf16") else None
    torch.set_float32_matmul_precision("high" if variant.endswith("tf32") else "highest")
    step = Step(model, optimiser, loss_for(data), autocast=mixed, capture="graphed" in variant)  # type: ignore[arg-type]
    _free()
    try:
        if compiled:
            run = _compiled(model, plan, optimiser, loss_for(data))
        else:
            staged = step.stage(lean(plan, needs))
            run = lambda: step(staged)  # noqa: E731
        run()
        run()
        median, spread = median_ms(run, 0.6)
        result = {
            "ms": median, "spread_ms": spread, "peak_bytes": torch.cuda.max_memory_allocated(),
            "make_s": made, "prepare_s": prepared, "bytes": nbytes, "flop": flops, "captured": step.capture,
        }  # fmt: skip
        if profile:
            result["kernels"] = kernels_of(run)
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
