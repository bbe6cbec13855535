"""Numbering the distinct rows of a feature matrix.

A plan never looks at the value of a feature. It only asks whether two feature rows are equal, and for that
a number per distinct row (its *kind*) is enough.
"""

import numpy as np

__all__ = ["distinct_rows"]

_LIMIT = 2**62


def _codes(column: np.ndarray) -> tuple[np.ndarray, int]:
    """Number the values of one column from 0, and say how many numbers there may be."""
    if column.dtype.kind in "iu":
        low, high = int(column.min()), int(column.max())
        if high - low < 4 * len(column) + 1024:  # a small range: no need to sort
            return column.astype(np.int64) - low, high - low + 1
    values, codes = np.unique(column, return_inverse=True)
    return codes.reshape(-1).astype(np.int64), len(values)


def distinct_rows(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``(kind[N], rows[K])`` with ``matrix == rows[kind]``, compared exactly and without hashing.

    >>> kind, rows = distinct_rows(np.array([[5, 1], [7, 2], [5, 1]]))
    >>> kind.tolist(), rows.tolist()
    ([0, 1, 0], [[5, 1], [7, 2]])
    """
    count = len(matrix)
    if count == 0:
        return np.zeros(0, np.int64), matrix.copy()
    code, size = np.zeros(count, np.int64), 1
    for column in matrix.T:
        new, new_size = _codes(np.ascontiguousarray(column))
        if size * new_size >= _LIMIT:
            code = np.unique(code, return_inverse=True)[1].reshape(-1).astype(np.int64)
            size = int(code.max()) + 1
        code = code * new_size + new
        size *= new_size
    _, first, kind = np.unique(code, return_index=True, return_inverse=True)
    return kind.reshape(-1).astype(np.int64), matrix[first]
