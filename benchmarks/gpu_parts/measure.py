"""Clocks, ceilings and the floor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import torch

import enfa
import enfa.nn.triton
from gpu_parts.cases import Case


@contextmanager
def plain_operators() -> Iterator[None]:
    """PyTorch's own operators instead of our kernels."""
    usable = enfa.nn.triton._usable
    enfa.nn.triton._usable = lambda: False  # type: ignore[assignment]
    try:
        yield
    finally:
        enfa.nn.triton._usable = usable  # type: ignore[assignment]


def median_ms(step: Callable[[], object], seconds: float = 1.0, warm: int = 3, most: int = 200) -> tuple[float, float]:
    """Median and quartile distance of the time of one call, by CUDA events."""
    for _ in range(warm):
        step()
    torch.cuda.synchronize()
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    step()
    end.record()
    torch.cuda.synchronize()
    times = max(5, min(most, int(1000 * seconds / max(start.elapsed_time(end), 0.01))))
    events = [torch.cuda.Event(enable_timing=True) for _ in range(times + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    each = torch.tensor([a.elapsed_time(b) for a, b in pairwise(events)])
    low, middle, high = each.quantile(torch.tensor([0.25, 0.5, 0.75])).tolist()
    return middle, high - low


def kernel_us(call: Callable[[], object], calls: int = 10) -> float:
    """Microseconds of one call without the time to launch it: several captured in a graph, and replayed."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        call()
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(calls):
            call()
    return median_ms(graph.replay, 0.02, most=40)[0] * 1e3 / calls


def ceilings() -> dict[str, float]:
    """Measured: bytes per second of a large copy, and operations per second of large matrix products."""
    pair = torch.randn(2, 2**29, device="cuda")
    ms, _ = median_ms(lambda: pair[0].copy_(pair[1]), 0.3)
    found = {"copy_bytes_per_s": pair.numel() * 4 / ms * 1e3}
    a, b = torch.randn(8192, 8192, device="cuda"), torch.randn(8192, 8192, device="cuda")
    for name, precision, dtype in (
        ("fp32", "highest", torch.float32), ("tf32", "high", torch.float32), ("bf16", "highest", torch.bfloat16),
    ):  # fmt: skip
        torch.set_float32_matmul_precision(precision)
        x, y = a.to(dtype), b.to(dtype)
        ms, _ = median_ms(lambda x=x, y=y: x @ y, 0.4)
        found[f"{name}_flop_per_s"] = 2 * 8192**3 / ms * 1e3
    torch.set_float32_matmul_precision("highest")
    return found


def work_of(plan: enfa.Bag, case: Case, first: int, parameters: int) -> tuple[float, float]:
    """Bytes that must move and operations that must be done in one training step.

    Per conv row, in units of a row of ``width`` float32: forwards the sum is written and read (2), each of two linear
    outputs is written for its statistics and read to be normalised (4), the table is written (1); backwards each
    BatchNorm reads its gradient and its input for the sums and again for the rows (8), the first linear's activations
    and the sum are read for weight gradients (2), and two gradients are written and read (3). The table before is read,
    and its gradient written, once (2). The readout reads the table and writes its gradient (2, once per pooled table).
    """
    width, nbytes, flops, before = case.width, 0.0, 0.0, (len(plan.feature), first)
    layers = [table.links for table in plan.tables if table.links is not None]
    for i, links in enumerate(layers):
        rows, messages = links.num_rows, len(links.in_row)
        nbytes += 4 * (rows * width * 20 + 2 * before[0] * before[1])
        nbytes += 4 * 2 * (2 * rows + 2 * messages)  # row numbers and kinds, once in each order
        if case.jk == "concat" or i == len(layers) - 1:
            nbytes += 4 * 2 * rows * width
        flops += 3 * 2 * rows * (before[1] * width + width * width)
        before = rows, width
    lists = next(table.sums for table in plan.tables if table.sums is not None)
    subs, entries = plan.num_subgraphs, len(lists.row)
    pooled = width * (case.layers if case.jk == "concat" else 1)
    nbytes += 4 * (subs * (4 * pooled + 4 * width) + 4 * entries) + 7 * 4 * parameters
    flops += 3 * 2 * subs * pooled * width
    return nbytes, flops
