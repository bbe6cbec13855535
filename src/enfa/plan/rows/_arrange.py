"""Numbering rows in the order in which graphs use them."""

from numba import njit

from enfa.plan.rows._intern import first_half, pack, second_half, sort_items

__all__ = ["meet_graphs", "renumber"]


@njit(cache=True, nogil=True)
def meet_graphs(base_ptr, base_row, sub_ptr, sub_delta, heads, items, seen, ids):
    """Graph by graph the rows of table L that it reads, into ``ids``; returns how many. ``seen`` has a False per delta.

    What an earlier graph's delta has is not listed again for the same delta; otherwise a row may come several times.
    """
    count = 0
    for g in range(len(base_ptr) - 1):
        for v in range(base_ptr[g], base_ptr[g + 1]):
            ids[count] = base_row[v]
            count += 1
        for s in range(sub_ptr[g], sub_ptr[g + 1]):
            delta = sub_delta[s]
            if not seen[delta]:
                seen[delta] = True
                for k in range(first_half(heads[delta]), first_half(heads[delta + 1])):
                    ids[count] = first_half(items[k])
                    count += 1
    return count


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
