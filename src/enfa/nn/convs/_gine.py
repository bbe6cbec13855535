"""GINE's messages on the CPU, each computed where it is added up. Lists are those of :class:`enfa.plan.derived.order.Lists`.

Every row is written by one thread, and sums over an edge kind by runs of rows, so the number of threads changes nothing.
"""

from enfa.cache import numba_kernel

__all__ = ["RUN", "gradient", "kind_gradient", "sums"]

RUN = 2048  # rows


@numba_kernel
def sums(table, edge, ptr, index, kind, begin, end, out):
    """[R, C]: a row's own row, which has kind -1, and relu(x + e) of its incoming rows, in ``out``, which comes zeroed."""
    channels, zero = table.shape[1], table.dtype.type(0)
    for n in range(begin * RUN, min(end * RUN, len(ptr) - 1)):
        for k in range(ptr[n], ptr[n + 1]):
            row, e = index[k], kind[k]
            if e < 0:
                for c in range(channels):
                    out[n, c] += table[row, c]
            else:
                for c in range(channels):
                    message = table[row, c] + edge[e, c]
                    out[n, c] += zero if message <= zero else message  # NaN stays NaN


@numba_kernel
def gradient(grad, table, edge, ptr, index, kind, begin, end, out, of_edge):
    """[rows of the table, C]: what comes back to each row, in ``out``. ``of_edge`` [runs, kinds, C], where it has any, gets the
    same by edge kind. Both come zeroed. The lists are the transposed ones."""
    channels, zero, kinds = table.shape[1], table.dtype.type(0), of_edge.shape[1]
    for n in range(begin * RUN, min(end * RUN, len(ptr) - 1)):
        for k in range(ptr[n], ptr[n + 1]):
            row, e = index[k], kind[k]
            if e < 0:
                for c in range(channels):
                    out[n, c] += grad[row, c]
            elif kinds:
                for c in range(channels):
                    passed = zero if table[n, c] + edge[e, c] <= zero else grad[row, c]
                    out[n, c] += passed
                    of_edge[n // RUN, e, c] += passed
            else:
                for c in range(channels):
                    out[n, c] += zero if table[n, c] + edge[e, c] <= zero else grad[row, c]


@numba_kernel
def kind_gradient(grad, table, edge, ptr, target, source, begin, end, out):
    """[kinds, C]: what comes back to each of many edge kinds, by lists of its messages, added to ``out``."""
    channels, zero = table.shape[1], table.dtype.type(0)
    for e in range(begin, end):
        for k in range(ptr[e], ptr[e + 1]):
            above, below = target[k], source[k]
            for c in range(channels):
                out[e, c] += zero if table[below, c] + edge[e, c] <= zero else grad[above, c]
