"""Maps written straight into their places in a block, padded, in both orders."""

from enfa.cache import numba_kernel
from enfa.plan.derived._order import split_long, spread, transpose

__all__ = ["fill_kinds", "fill_map", "pad_map"]


@numba_kernel
def _pad(lists, entries, chunk, first, ptr, index, weight, other, extra, long, fill, other_fill):
    """The pieces of lists that stand in their arrays, and what stands behind them. False where there is no room."""
    pieces, cut = split_long(ptr[: lists + 1], chunk, first, extra, long)
    if pieces < 0:
        return False
    extra[:, pieces:] = 0
    long[:, cut:] = 0
    ptr[lists + 1 :] = entries
    index[entries:] = fill
    if weight is not None:
        weight[entries:] = 0
    if other is not None:
        other[entries:] = other_fill
    return True


@numba_kernel
def pad_map(
    lists, entries, rows, chunk,
    ptr, index, weight, other, extra, long, fill,
    back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill,
):  # fmt: skip
    """What stands behind the lists of a map in both orders, and the pieces of long ones. False where these have no room."""
    if not _pad(lists, entries, chunk, chunk, ptr, index, weight, other, extra, long, fill, -1):
        return False
    return _pad(
        rows, entries, chunk, chunk, back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill, -1
    )


@numba_kernel
def fill_map(
    lists, entries, rows, chunk, of,
    ptr, index, weight, other, extra, long, fill,
    back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill,
):  # fmt: skip
    """The backward lists of a map over ``rows`` rows whose forward lists stand in their arrays; both padded.

    ``of`` is scratch, eight longer than ``entries``. False where there is no room for all pieces of long lists.
    """
    spread(ptr[: lists + 1], of)
    back_ptr[: rows + 1] = 0
    transpose(of, index[:entries], weight, other, back_ptr[: rows + 1], back_index, back_weight, back_other)
    return pad_map(
        lists, entries, rows, chunk, ptr, index, weight, other, extra, long, fill,
        back_ptr, back_index, back_weight, back_other, back_extra, back_long, back_fill,
    )  # fmt: skip


@numba_kernel
def fill_kinds(chunk, of, in_ptr, in_row, in_edge, ptr, index, other, extra, long, fill, other_fill):
    """The lists of messages by edge kind, padded. Returns as :func:`fill_map`."""
    spread(in_ptr, of)
    ptr[:] = 0
    transpose(of, in_edge, None, in_row, ptr, index, None, other)
    return _pad(len(ptr) - 1, len(in_row), chunk, 0, ptr, index, None, other, extra, long, fill, other_fill)
