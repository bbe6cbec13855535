"""Hashes of rows, in one pass over their messages."""

import numpy as np

from enfa.cache import numba_kernel

__all__ = ["over_links"]

_A, _B, _C = np.int64(-0x4B47D0C5A1F2E9A3), np.int64(-0x61C8864680B583EB), np.int64(0x2545F4914F6CDD1D)
_LOW35, _LOW32 = np.int64(0x7FFFFFFFF), np.int64(0xFFFFFFFF)


@numba_kernel(inline="always")
def _mix(value):
    """``enfa.plan.derived.identity.mix64`` of one number."""
    value = value * _A
    value = (value ^ ((value >> np.int64(29)) & _LOW35)) * _B
    value = (value ^ ((value >> np.int64(32)) & _LOW32)) * _C
    return value ^ ((value >> np.int64(29)) & _LOW35)


@numba_kernel
def over_links(before, self_row, in_ptr, in_row, in_edge, edge, out):
    for r in range(len(self_row)):
        total = np.int64(0)
        for k in range(in_ptr[r], in_ptr[r + 1]):
            total += _mix(before[in_row[k]] + edge[in_edge[k]] + np.int64(3))
        out[r] = _mix(_mix(before[self_row[r]] + np.int64(5)) + total)
