"""Counted BatchNorm on the CPU, and the ReLU behind it: a pass for the statistics and one for the result; likewise backwards.

Sums are taken by blocks of rows, as in :mod:`enfa.nn.ops.blocks`; the blocks of a run are added up in float64. Runs from
``begin`` to ``end`` are what one thread takes. Rows that stand for nothing (``copies`` 0) may hold anything, and are not read.
"""

import numpy as np

from enfa.cache import numba_kernel

__all__ = ["RUN", "gradient", "gradient_sums", "moments", "normalised"]

BLOCK = 128  # rows
RUN = 16 * BLOCK


@numba_kernel
def moments(x, copies, shift, begin, end, mean, square, total):
    """Of each run the weighted ``mean`` of x - shift, the sum of squares about it, and the count: [runs, C] and [runs].

    They come zeroed. Blocks are put together as Chan, Golub and LeVeque do.
    """
    rows, channels = x.shape
    sums, squares = np.empty((2, channels), x.dtype)
    for block in range(begin * (RUN // BLOCK), min(end * (RUN // BLOCK), (rows + BLOCK - 1) // BLOCK)):
        run, first, last = block // (RUN // BLOCK), block * BLOCK, min((block + 1) * BLOCK, rows)
        weight = 0.0
        for c in range(channels):
            sums[c] = 0
            squares[c] = 0
        for r in range(first, last):
            count = copies[r]
            if count != 0:
                weight += count
                for c in range(channels):
                    sums[c] += count * (x[r, c] - shift[c])
        if weight == 0:
            continue
        for c in range(channels):
            sums[c] = sums[c] / weight
        for r in range(first, last):
            count = copies[r]
            if count != 0:
                for c in range(channels):
                    away = (x[r, c] - shift[c]) - sums[c]
                    squares[c] += count * (away * away)
        before = total[run]
        total[run] = before + weight
        for c in range(channels):
            between = np.float64(sums[c]) - mean[run, c]
            mean[run, c] += between * (weight / total[run])
            square[run, c] += squares[c] + between * between * (before * weight / total[run])


@numba_kernel
def normalised(x, copies, shift, mean, scale, bias, relu, begin, end, out):
    """((x - shift) - mean) * scale + bias; the bias for rows that stand for nothing."""
    rows, channels = x.shape
    zero = x.dtype.type(0)
    for r in range(begin * RUN, min(end * RUN, rows)):
        if copies[r] != 0:
            for c in range(channels):
                out[r, c] = ((x[r, c] - shift[c]) - mean[c]) * scale[c] + bias[c]
        else:
            for c in range(channels):
                out[r, c] = bias[c]
        if relu:
            for c in range(channels):
                out[r, c] = zero if out[r, c] <= 0 else out[r, c]  # NaN stays NaN


@numba_kernel
def gradient_sums(grad, x, copies, shift, mean, scale, bias, relu, begin, end, sums):
    """Of each run the sum of gradients in front of the ReLU, and of these times x - mean: [runs, 2, C], which comes zeroed."""
    rows, channels = x.shape
    passed, weighed = np.empty((2, channels), x.dtype)
    zero = x.dtype.type(0)  # a plain 0 would make float64 of float32
    for block in range(begin * (RUN // BLOCK), min(end * (RUN // BLOCK), (rows + BLOCK - 1) // BLOCK)):
        run, first, last = block // (RUN // BLOCK), block * BLOCK, min((block + 1) * BLOCK, rows)
        for c in range(channels):
            passed[c] = 0
            weighed[c] = 0
        for r in range(first, last):
            if copies[r] != 0:
                for c in range(channels):
                    centred = (x[r, c] - shift[c]) - mean[c]
                    above = zero if relu and centred * scale[c] + bias[c] <= 0 else grad[r, c]
                    passed[c] += above
                    weighed[c] += above * centred
        for c in range(channels):
            sums[run, 0, c] += passed[c]
            sums[run, 1, c] += weighed[c]


@numba_kernel
def gradient(grad, x, copies, shift, mean, scale, bias, relu, total, of_all, of_row, begin, end, out):
    """(grad - copies / total * (of_all + of_row * (x - mean))) * scale; 0 for rows that stand for nothing.

    Scaled last: of equal gradients nothing must be left, where rounding would be multiplied by 1 / sqrt(eps) in each norm.
    """
    rows, channels = x.shape
    zero = x.dtype.type(0)
    for r in range(begin * RUN, min(end * RUN, rows)):
        part = copies[r] / total
        if part != 0:
            for c in range(channels):
                centred = (x[r, c] - shift[c]) - mean[c]
                above = zero if relu and centred * scale[c] + bias[c] <= 0 else grad[r, c]
                out[r, c] = (above - part * (of_all[c] + of_row[c] * centred)) * scale[c]
        else:
            for c in range(channels):
                out[r, c] = 0
