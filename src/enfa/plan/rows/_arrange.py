"""Numbering rows in the order in which graphs use them."""

from numba import njit

from enfa.plan.rows._intern import first_half, pack, second_half, sort_items

__all__ = ["renumber"]


@njit(cache=True, nogil=True)
def renumber(own, ptr, items, own_number, item_number, heads):
    """Translate keys in place, sort their items anew, and pack their heads. An empty map leaves numbers as they are."""
    for i in range(len(own)):
        heads[i] = pack(ptr[i], own_number[own[i]] if len(own_number) else own[i])
        if len(item_number):
            for k in range(ptr[i], ptr[i + 1]):
                items[k] = pack(item_number[first_half(items[k])], second_half(items[k]))
            sort_items(items[ptr[i] : ptr[i + 1]], ptr[i + 1] - ptr[i])
    heads[len(own)] = pack(ptr[len(own)], 0)
