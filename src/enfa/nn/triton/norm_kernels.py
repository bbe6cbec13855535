"""The kernels of counted BatchNorm with the ReLU behind it.

The first kernel of each pair takes column sums over a share of the rows per program; the second starts by adding up
those shares, in a fixed order, and then normalises its rows. Mean and variance are merged by Chan's formula, so nothing
cancels, and are float32 whatever the rows are (float64 for float64 rows). The running buffers are updated on the way.

Equal rows have exactly their own mean, whatever their number: a rounding error there, divided by a variance of 0, would decide
on which side of a ReLU they come out.

A row that stands for nothing (the padding of a bucket) is not read for the statistics, comes out as the bias, and so stays
finite however many norms follow: a product with its count, 0, is 0.

All programs walk over the table side by side, and the second kernel the other way than the first: it meets the rows first
that were read last, which the cache still holds.
"""

import triton
import triton.language as tl

from enfa.nn.triton.launch import kernel

__all__ = [
    "above_relu", "gradient_kernel", "gradient_sums_kernel", "load_scaling", "normalise_kernel", "normalised",
    "row_gradients", "statistics_kernel", "total_gradients", "totals_kernel",
]  # fmt: skip


@triton.jit
def _weighted_mean(values, weights, total):
    """Over the first axis, and once more of what is left then: of equal values it is exactly these."""
    whole = tl.maximum(total, 1)
    mean = tl.sum(values * weights[:, None], 0) / whole
    return mean + tl.sum((values - mean[None, :]) * weights[:, None], 0) / whole


@kernel(do_not_specialize=["R"])
def statistics_kernel(
    x, copies, mean_parts, square_parts, count_parts, R,
    C: tl.constexpr, ACC: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """Weighted mean and sum of squared deviations of a share of the rows, by Welford's update."""
    part = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    tiles = tl.cdiv(R, ROWS)
    count = tl.zeros((ROWS,), ACC)
    mean = tl.zeros((ROWS, COLS), ACC)
    square = tl.zeros((ROWS, COLS), ACC)
    for tile in range(part, tiles, tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        c = tl.load(copies + rows, rows < R, 0).to(ACC)
        # a row that stands for nothing is not even read: it may hold anything
        counted = (c > 0)[:, None] & inside[None, :]
        value = tl.load(x + rows.to(tl.int64)[:, None] * C + cols[None, :], counted, 0).to(ACC)
        count += c
        away = tl.where(counted, value - mean, 0)
        # 1 for the first that counts: a GPU's quotient of two equal numbers may be another
        mean += away * tl.where(count > c, c / tl.maximum(count, 1), 1)[:, None]
        square += c[:, None] * away * (value - mean)
    total = tl.sum(count, 0)
    middle = _weighted_mean(mean, count, total)
    away = mean - middle[None, :]
    spread = tl.sum(square + count[:, None] * away * away, 0)
    tl.store(mean_parts + part * C + cols, middle, inside)
    tl.store(square_parts + part * C + cols, spread, inside)
    if tl.program_id(1) == 0:
        tl.store(count_parts + part, total)


@triton.jit
def load_scaling(
    rstd, weight, bias, cols, inside, AFFINE: tl.constexpr, ACC: tl.constexpr, COLS: tl.constexpr
):  # fmt: skip
    """What centred rows are multiplied by, and what is added then."""
    scale = rstd
    shift = tl.zeros((COLS,), ACC)
    if AFFINE:
        scale = rstd * tl.load(weight + cols, inside, 0).to(ACC)
        shift = tl.load(bias + cols, inside, 0).to(ACC)
    return scale, shift


@triton.jit
def normalised(value, mean, scale, shift, RELU: tl.constexpr):
    """Normalised rows, behind the ReLU."""
    value = (value - mean[None, :]) * scale[None, :] + shift[None, :]
    if RELU:
        value = tl.where(value <= 0, 0, value)  # not the maximum, which hides NaN
    return value


@kernel(do_not_specialize=["R", "num_parts"])
def normalise_kernel(
    x, out, copies, mean_parts, square_parts, count_parts, weight, bias, saved, total_out, running_mean, running_var,
    batches, constants, R, num_parts,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, RUNNING: tl.constexpr,
    ACC: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    parts = tl.arange(0, PARTS)
    there = parts < num_parts
    at = parts[:, None] * C + cols[None, :]
    count = tl.load(count_parts + parts, there, 0)
    total = tl.sum(count, 0)
    means = tl.load(mean_parts + at, there[:, None] & inside[None, :], 0)
    mean = _weighted_mean(means, count, total)
    away = means - mean[None, :]
    squares = tl.load(square_parts + at, there[:, None] & inside[None, :], 0)
    var = tl.sum(squares + count[:, None] * away * away, 0) / tl.maximum(total, 1)
    rstd = 1 / tl.sqrt(var + tl.load(constants))
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, ACC, COLS)
    if program == 0:
        tl.store(saved + cols, mean, inside)
        tl.store(saved + C + cols, rstd, inside)
        tl.store(saved + 2 * C + cols, var, inside)
        if tl.program_id(1) == 0:
            tl.store(total_out, tl.maximum(total, 1))
        if RUNNING:
            momentum = tl.load(constants + 1)
            if total > 0:
                old = tl.load(running_mean + cols, inside, 0)
                tl.store(running_mean + cols, old + momentum * (mean - old), inside)
                old = tl.load(running_var + cols, inside, 0)
                unbiased = var * (total / tl.maximum(total - 1, 1))
                tl.store(running_var + cols, old + momentum * (unbiased - old), inside)
            if tl.program_id(1) == 0:
                tl.store(batches, tl.load(batches) + 1)
    tiles = tl.cdiv(R, ROWS)
    for tile in range(program, tiles, tl.num_programs(0)):
        rows = (tiles - 1 - tile) * ROWS + tl.arange(0, ROWS)
        mask = (rows < R)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        counted = (tl.load(copies + rows, rows < R, 0) > 0)[:, None]
        value = tl.where(counted, tl.load(x + place, mask, 0).to(ACC), mean[None, :])
        value = normalised(value, mean, scale, shift, RELU)
        tl.store(out + place, value.to(out.dtype.element_ty), mask)


@triton.jit
def total_gradients(parts_in, of_params, num_parts, cols, inside, stores, C: tl.constexpr, PARTS: tl.constexpr):
    """The sums of :func:`gradient_sums_kernel` over all shares, which are the gradients of bias and weight: stored by one."""
    parts = tl.arange(0, PARTS)
    there = (parts < num_parts)[:, None] & inside[None, :]
    at = parts[:, None] * C + cols[None, :]
    plain = tl.sum(tl.load(parts_in + at, there, 0), 0)
    times = tl.sum(tl.load(parts_in + num_parts * C + at, there, 0), 0)
    tl.store(of_params + cols, times.to(of_params.dtype.element_ty), inside & stores)
    tl.store(of_params + C + cols, plain.to(of_params.dtype.element_ty), inside & stores)
    return plain, times


@kernel(do_not_specialize=["num_parts"])
def totals_kernel(parts_in, of_params, num_parts, C: tl.constexpr, PARTS: tl.constexpr, COLS: tl.constexpr):
    """For kernels whose programs are too many to add up the shares each for itself."""
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    total_gradients(parts_in, of_params, num_parts, cols, cols < C, cols < C, C, PARTS)


@triton.jit
def row_gradients(above, normal, copies, rows, there, total, plain, times, scale, ACC: tl.constexpr):
    """The gradients of some rows in front of the norm; of a row that stands for nothing, whatever it holds, 0."""
    weighing = (tl.load(copies + rows, there, 0).to(ACC) / total)[:, None]
    common = weighing * (plain[None, :] + normal * times[None, :])
    return tl.where(weighing > 0, (above - common) * scale[None, :], 0)


@triton.jit
def above_relu(
    grad, x, place, mask, mean, rstd, scale, shift, RELU: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """Normalised rows, and the gradient that the ReLU let through."""
    centred = tl.load(x + place, mask, 0).to(ACC) - mean[None, :]
    above = tl.load(grad + place, mask, 0).to(ACC)
    if RELU:
        above = tl.where(centred * scale[None, :] + shift[None, :] <= 0, 0, above)
    return above, centred * rstd[None, :]


@kernel(do_not_specialize=["R", "num_parts"])
def gradient_sums_kernel(
    grad, x, copies, saved, weight, bias, parts_out, R, num_parts,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, ACC: tl.constexpr,
    ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    """A row that stands for nothing comes out as the bias, and gives no gradient."""
    part = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, ACC, COLS)
    plain = tl.zeros((ROWS, COLS), ACC)
    times = tl.zeros((ROWS, COLS), ACC)
    tiles = tl.cdiv(R, ROWS)
    for tile in range(part, tiles, tl.num_programs(0)):
        rows = (tiles - 1 - tile) * ROWS + tl.arange(0, ROWS)
        mask = (rows < R)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        above, normal = above_relu(grad, x, place, mask, mean, rstd, scale, shift, RELU, ACC)
        counted = (tl.load(copies + rows, rows < R, 0) > 0)[:, None]
        plain += tl.where(counted, above, 0)
        times += tl.where(counted, above * normal, 0)
    tl.store(parts_out + part * C + cols, tl.sum(plain, 0), inside)
    tl.store(parts_out + (num_parts + part) * C + cols, tl.sum(times, 0), inside)


@kernel(do_not_specialize=["R", "num_parts"])
def gradient_kernel(
    grad, x, copies, saved, total_in, weight, bias, parts_in, out, of_params, R, num_parts,
    C: tl.constexpr, AFFINE: tl.constexpr, RELU: tl.constexpr, ACC: tl.constexpr,
    PARTS: tl.constexpr, ROWS: tl.constexpr, COLS: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    cols = tl.program_id(1) * COLS + tl.arange(0, COLS)
    inside = cols < C
    plain, times = total_gradients(parts_in, of_params, num_parts, cols, inside, program == 0, C, PARTS)
    mean, rstd = tl.load(saved + cols, inside, 0), tl.load(saved + C + cols, inside, 0)
    scale, shift = load_scaling(rstd, weight, bias, cols, inside, AFFINE, ACC, COLS)
    total = tl.load(total_in)
    tiles = tl.cdiv(R, ROWS)
    for tile in range(program, tiles, tl.num_programs(0)):
        rows = tile * ROWS + tl.arange(0, ROWS)
        mask = (rows < R)[:, None] & inside[None, :]
        place = rows.to(tl.int64)[:, None] * C + cols[None, :]
        above, normal = above_relu(grad, x, place, mask, mean, rstd, scale, shift, RELU, ACC)
        of_x = row_gradients(above, normal, copies, rows, rows < R, total, plain, times, scale, ACC)
        tl.store(out + place, of_x.to(out.dtype.element_ty), mask)
