"""Weighted normalisation on the CPU, and the ReLU behind it, by kernels that read the rows half as often as operators do."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.nn.ops import _normalise
from enfa.nn.ops.counted import Counted, Running, update_running
from enfa.nn.ops.function import applied, backward_once
from enfa.nn.ops.threads import array, by_numba, in_threads

__all__ = ["CountedOnCpu", "normalise"]


def _joined(mean: np.ndarray, square: np.ndarray, total: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    """Mean, sum of squares about it, and count of all runs together."""
    whole = max(float(total.sum()), 1.0)
    part = total[:, None] / whole
    of_all = (mean * part).sum(0)
    return of_all, (square + total[:, None] * (mean - of_all) ** 2).sum(0), whole


class CountedOnCpu(torch.autograd.Function):
    """:class:`enfa.nn.ops.counted.Counted` in one process, with a ReLU if asked for."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor | None, bias: Tensor | None, copies: Tensor, eps: float, relu: bool,
        running: Running | None, alone: bool,
    ) -> Tensor:  # fmt: skip
        rows, channels = x.shape
        runs, (value, count) = -(-rows // _normalise.RUN), map(array, (x, copies))
        # as there: relative to a row that counts, equal rows have exactly their own mean
        shift = value[int(count.argmax())].copy() if rows else np.zeros(channels, value.dtype)
        (means, squares), totals = np.zeros((2, runs, channels)), np.zeros(runs)
        in_threads(runs, value.size, lambda a, b: _normalise.moments(value, count, shift, a, b, means, squares, totals))
        with np.errstate(all="ignore"):  # of infinite rows, about which operators say nothing either
            mean, square, total = _joined(means, squares, totals)
            var, of_all = square / total, mean + shift
            rstd = 1 / np.sqrt(var + eps)
            scale = rstd if weight is None else rstd * array(weight)
            about = (
                shift,
                mean.astype(value.dtype),
                scale.astype(value.dtype),
                np.zeros(channels, value.dtype) if bias is None else array(bias).copy(),
                relu,
            )
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        in_threads(runs, 2 * value.size, lambda a, b: _normalise.normalised(value, count, *about, a, b, array(out)))
        # what something else reads, it may also write into
        ctx.save_for_backward(x if alone else x.clone(), copies)
        ctx.about, ctx.rstd, ctx.total, ctx.has = about, rstd, total, (weight is not None, bias is not None)
        if running is not None:  # behind what is saved, as there
            update_running(running, *(torch.as_tensor(v, dtype=x.dtype) for v in (of_all, var, total)))
        return out

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, copies = ctx.saved_tensors
        above, value, count = map(array, (grad, x, copies))
        runs = -(-len(value) // _normalise.RUN)
        sums = np.zeros((runs, 2, value.shape[1]))
        about = (value, count, *ctx.about)
        in_threads(runs, 2 * value.size, lambda a, b: _normalise.gradient_sums(above, *about, a, b, sums))
        of_bias, of_weight = sums.sum(0)
        with np.errstate(all="ignore"):
            of_weight *= ctx.rstd
            of_all, of_row = (v.astype(value.dtype) for v in (of_bias, of_weight * ctx.rstd))
        out = torch.empty_like(x, memory_format=torch.contiguous_format)
        total = value.dtype.type(ctx.total)
        rest = (total, of_all, of_row)
        in_threads(runs, 3 * value.size, lambda a, b: _normalise.gradient(above, *about, *rest, a, b, array(out)))
        found = (torch.from_numpy(v).to(x.dtype) if has else None for v, has in zip((of_weight, of_bias), ctx.has))
        return out, *found, *(None,) * 5


def normalise(
    x: Tensor, copies: Tensor, uncounted: Tensor | None, weight: Tensor | None, bias: Tensor | None, eps: float, group: Any,
    running: Running | None, relu: bool = False, alone: bool = False,
) -> Tensor:  # fmt: skip
    """Rows of any type, as often as they count; and a ReLU behind it. ``alone``: nothing else reads ``x``."""
    # counts and sums do not fit into 8 or 11 bits; the result has the type of the rows, as PyTorch's own
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    with torch.autocast(x.device.type, enabled=False):
        weight, bias = (None if w is None else w.to(wide.dtype) for w in (weight, bias))
        rest = (wide, weight, bias, copies.to(wide.dtype))
        if group is None and by_numba(wide):
            out = applied(CountedOnCpu, *rest, eps, relu, running, alone)
        else:
            out = applied(Counted, *rest, uncounted, eps, group, running)
            out = torch.relu(out) if relu else out
    return out.to(x.dtype)
