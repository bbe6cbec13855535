"""What an edit changes around a hub, said without the messages that it leaves alone."""

import numpy as np

from enfa.cache import numba_kernel
from enfa.plan.keys._intern import Keys, intern, pack, sort_items
from enfa.plan.rows._groups import Edges, Edited, HubScratch, Kinds, Reach
from enfa.plan.rows._walk import HUB, links_of, reached, restore_kinds, swap_rows

__all__ = ["hub_changes"]


@numba_kernel(inline="always")
def _is_hub(v, in_ptr):
    return in_ptr[v + 1] - in_ptr[v] > HUB


@numba_kernel
def hub_changes(
    first, edges: Edges, kinds: Kinds, edits: Edited, within: Reach, pairs, scratch: HubScratch, keys: Keys, hub_ptr, hub_node,
    hub_change, predicted,
):  # fmt: skip
    """Number the distinct changes to the keys of hubs: (hub, its own row, messages taken away, messages added).

    Two subgraphs with the same change give the hub the same row, so the walk makes that row once, whatever the degree.
    Changes of more than an eighth of a hub's messages are left to the walk; so are complete subgraphs. The base rows of
    ``pairs`` are overwritten for one subgraph at a time and restored, as are kinds and counts. ``predicted[0]`` adds up the
    degrees of the hubs over the distinct changes: messages that the walk will store. Stops early, as the walk does, with
    ``predicted[1]`` and ``predicted[2]`` the rows and items that the next subgraph needs.
    """
    in_ptr, src, dst, out_ptr, _ = edges
    kind, base_kind = kinds
    edge_ptr, edge, edge_value = edits.edge_ptr, edits.edge, edits.edge_value
    row, pair_ptr, pair_node, _, keeps = pairs
    reach, queue, size = within.stamp, within.queue, keys.size
    before, to_ptr, to_hub, count, start, touched, found, changed, removed, added, items = scratch
    for s in range(first, len(pair_ptr) - 1):
        hub_ptr[s + 1] = hub_ptr[s]
        if keeps[s]:
            continue
        begin, end = pair_ptr[s], pair_ptr[s + 1]
        near, everywhere = 0, True
        if within.depth >= 0:
            limit = 4 * links_of(pair_node, begin, end, out_ptr) + 1024
            near = reached(s, within, limit, edges)
            everywhere = near > limit
            any_hub = everywhere
            for c in range(near):
                any_hub |= _is_hub(queue[c], in_ptr)
            if not any_hub:
                continue
        swap_rows(pairs, s)  # swapped back below
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edge[q]
            kind[e] = -1 if edge_value[q] < 0 else base_kind[e] + edge_value[q]
        listed = 0
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            e = edge[q]
            if kind[e] != base_kind[e] and _is_hub(dst[e], in_ptr) and (everywhere or reach[dst[e]] == s):
                found[listed] = e
                listed += 1
        for q in range(begin, end):
            for p in range(to_ptr[pair_node[q]], to_ptr[pair_node[q] + 1]):
                e = to_hub[p]
                # an edited edge has been listed above
                if kind[e] == base_kind[e] and (everywhere or reach[dst[e]] == s):
                    found[listed] = e
                    listed += 1
        hubs, total = 0, 0
        for k in range(listed):
            v = dst[found[k]]
            if count[v] == 0:
                touched[hubs] = v
                hubs += 1
            count[v] += 1
        for h in range(hubs):
            v = touched[h]
            few = row[v] >= 0 and 8 * count[v] <= in_ptr[v + 1] - in_ptr[v]
            start[v] = total if few else -1
            total += count[v] * few
        for k in range(listed):
            v = dst[found[k]]
            if start[v] >= 0:
                changed[start[v]] = found[k]
                start[v] += 1
        room = (
            size[0] + hubs < len(keys.hashes)
            and size[1] + 2 * total + 2 * hubs <= len(keys.stored)
            and hub_ptr[s] + hubs <= len(hub_node)
        )
        if room:
            at = hub_ptr[s]
            for h in range(hubs):
                v = touched[h]
                if start[v] < 0:
                    continue
                gone, new = 0, 0
                for k in range(start[v] - count[v], start[v]):
                    e = changed[k]
                    removed[gone] = pack(before[src[e]], base_kind[e])
                    gone += 1
                    if row[src[e]] >= 0 and kind[e] >= 0:
                        added[new] = pack(row[src[e]], kind[e])
                        new += 1
                sort_items(removed, np.int64(gone))
                sort_items(added, np.int64(new))
                items[0], items[1] = row[v], gone
                for k in range(gone):
                    items[2 + k] = removed[k]
                for k in range(new):
                    items[2 + gone + k] = added[k]
                known = size[0]
                hub_node[at] = v
                hub_change[at] = intern(np.int64(v), items, np.int64(2 + gone + new), keys)
                if size[0] > known:
                    predicted[0] += in_ptr[v + 1] - in_ptr[v]
                at += 1
            hub_ptr[s + 1] = at
        else:
            predicted[1], predicted[2] = hubs, 2 * total + 2 * hubs
            for c in range(near):
                reach[queue[c]] = -1
        for h in range(hubs):
            count[touched[h]] = 0
        swap_rows(pairs, s)
        restore_kinds(edits, s, kinds)
        if not room:
            return s
    return len(pair_ptr) - 1
