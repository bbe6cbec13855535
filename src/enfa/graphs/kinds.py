"""Numbering the distinct rows of a feature matrix.

A plan never looks at the value of a feature. It only asks whether two feature rows are equal, and for that
a number per distinct row (its *kind*) is enough.
"""

import numpy as np

__all__ = ["distinct_rows"]

_LIMIT = 2**62


def _few(size: int, of: np.ndarray) -> bool:
    """Whether so many values are numbered faster by counting than by sorting."""
    return size < 4 * len(of) + 1024


def _codes(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Number the values of one column from 0, and say how many numbers there may be."""
    if column.dtype.kind in "iu":
        low, high = int(column.min()), int(column.max())
        if _few(high - low, column):
            return column.astype(np.int64) - low, high - low + 1
    values, codes = np.unique(column, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), len(values)


def _numbered(code: np.ndarray, size: int) -> tuple[np.ndarray, int]:
    """Codes below ``size`` numbered through, in the same order, and how many there are."""
    if _few(size, code):
        there = np.zeros(size, bool)
        there[code] = True
        number = np.cumsum(there) - 1
        return (code, size) if there.all() else (number[code], int(number[-1]) + 1)
    values, number = np.unique(code, return_inverse=True)
    return number.reshape(-1).astype(np.int64, copy=False), len(values)


def distinct_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``(kind[N], rows[K])`` with ``matrix == rows[kind]``, compared exactly and without hashing.

    >>> kind, rows = distinct_rows(np.array([[5, 1], [7, 2], [5, 1]]))
    >>> kind.tolist(), rows.tolist()
    ([0, 1, 0], [[5, 1], [7, 2]])
    """
    count = len(matrix)
    if count == 0:
        return np.zeros(0, np.int64), matrix.copy()
    kind, size = np.zeros(count, np.int64), 1
    for column in matrix.T:
        new, new_size = _codes(np.ascontiguousarray(column))
        if size * new_size >= _LIMIT:
            kind, size = _numbered(kind, size)
        kind, size = kind * new_size + new, size * new_size
        if _few(size, kind):  # so that they stay few
            kind, size = _numbered(kind, size)
    kind, size = _numbered(kind, size)
    first = np.empty(size, np.int64)
    first[kind[::-1]] = np.arange(count)[::-1]
    return kind, matrix[first]
