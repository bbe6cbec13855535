"""Integers as they are stored: differences, zigzag, planes of bytes; and back; and their sums. One pass, nothing allocated."""

import numpy as np

from enfa.cache import numba_kernel

__all__ = ["decode", "encode", "limits", "sum_runs"]


@numba_kernel
def limits(values, delta):
    """The smallest and the largest number that is stored; of differences, zigzag numbers: 0, -1, 1, -2 are 0, 1, 2, 3."""
    low = high = before = 0
    for i in range(len(values)):
        value = np.int64(values[i])
        if delta:
            value, before = value - before, value
            value = (value << 1) ^ (value >> 63)
        if i == 0 or value < low:
            low = value
        if i == 0 or value > high:
            high = value
    return low, high


@numba_kernel
def encode(values, delta, planes):
    """``planes`` is uint8 [width, n], which is written, lowest byte first; ``values`` any integer array [n]."""
    width, before = planes.shape[0], 0
    for i in range(len(values)):
        value = np.int64(values[i])
        if delta:
            value, before = value - before, value
            value = (value << 1) ^ (value >> 63)
        for k in range(width):
            planes[k, i] = (value >> (8 * k)) & 0xFF


@numba_kernel
def decode(planes, delta, out):
    """``planes`` is uint8 [width, n], lowest byte first; ``out`` any integer array [n]."""
    width, count = planes.shape
    above = 64 - 8 * width
    total = np.int64(0)
    for i in range(count):
        value = np.int64(planes[0, i])
        # nearly all have three bytes at most: without a loop over them it takes a third of the time
        if width > 1:
            value |= np.int64(planes[1, i]) << 8
        if width > 2:
            value |= np.int64(planes[2, i]) << 16
        for k in range(3, width):
            value |= np.int64(planes[k, i]) << (8 * k)
        if delta:
            # 64-bit differences fill the sign bit: shift it down as any other
            total += ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
            out[i] = total
        else:
            out[i] = (value << above) >> above  # sign


@numba_kernel
def sum_runs(lengths, values, total):
    """``total[n]`` is the sum of the next ``lengths[n]`` values, of which there are as many as all lengths say."""
    at = 0
    for n in range(len(lengths)):
        found = np.int64(0)
        for k in range(at, at + lengths[n]):
            found += values[k]
        at += lengths[n]
        total[n] = found
