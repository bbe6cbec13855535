"""Decoding stored integers: planes of bytes, zigzag, running sums, in one pass."""

from enfa.cache import numba_kernel

__all__ = ["decode"]


@numba_kernel
def decode(planes, delta, out):
    """``planes`` is uint8 [width, n], lowest byte first; ``out`` any integer array [n]."""
    width, count = planes.shape
    total = 0
    for i in range(count):
        value = 0
        for k in range(width):
            value |= int(planes[k, i]) << (8 * k)
        if delta:
            # 64-bit differences fill the sign bit: shift it down as any other
            total += ((value >> 1) & 0x7FFFFFFFFFFFFFFF) ^ -(value & 1)
            out[i] = total
        else:
            top = 1 << (8 * width - 1) if width < 8 else 0
            out[i] = (value ^ top) - top  # sign
    return total
