"""Counting the edges of subgraphs and of ego nets, without writing any of them out."""

from numba import njit

__all__ = ["edges_by_hop", "subgraph_edges"]


@njit(cache=True, nogil=True)
def subgraph_edges(
    first_sub, graph_edges, keeps, in_ptr, src, out_ptr, out_edge, node_ptr, node, node_value, edge_ptr, edge,
    edge_value, seen, gone, count,
):  # fmt: skip
    """``count[s]`` edges are left in subgraph s. ``first_sub[g]`` bounds bags.

    ``seen[v]`` and ``gone[e]`` are scratch, -1 at first.
    """
    for g in range(len(first_sub) - 1):
        for s in range(first_sub[g], first_sub[g + 1]):
            left = graph_edges[g]
            for q in range(edge_ptr[s], edge_ptr[s + 1]):
                if edge_value[q] < 0 and gone[edge[q]] != s:
                    gone[edge[q]] = s
                    left -= 1
            if keeps[s]:  # only edges between the nodes that it lists
                left = 0
                for q in range(node_ptr[s], node_ptr[s + 1]):
                    seen[node[q]] = s
                for q in range(node_ptr[s], node_ptr[s + 1]):
                    for p in range(in_ptr[node[q]], in_ptr[node[q] + 1]):
                        if seen[src[p]] == s and gone[p] != s:
                            left += 1
            for q in range(node_ptr[s], node_ptr[s + 1]):
                if node_value[q] < 0 and not keeps[s]:
                    v = node[q]
                    for p in range(in_ptr[v], in_ptr[v + 1]):
                        if gone[p] != s:
                            gone[p] = s
                            left -= 1
                    for p in range(out_ptr[v], out_ptr[v + 1]):
                        if gone[out_edge[p]] != s:
                            gone[out_edge[p]] = s
                            left -= 1
            count[s] = left


@njit(cache=True, nogil=True)
def edges_by_hop(ptr, node, hop, in_ptr, src, edge_ptr, edge, edge_value, seen, hop_of, gone, rows, edges):
    """``rows[h]`` nodes have pivot hop h, ``edges[h]`` edges have h as the larger hop of their two ends.

    ``ptr, node, hop`` are those of :class:`~enfa.report.bags.hops.PivotHops`. ``seen[v]`` and ``gone[e]`` come as -1.
    """
    for s in range(len(ptr) - 1):
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            if edge_value[q] < 0:
                gone[edge[q]] = s
        for q in range(ptr[s], ptr[s + 1]):
            seen[node[q]] = s
            hop_of[node[q]] = hop[q]
            rows[hop[q]] += 1
        for q in range(ptr[s], ptr[s + 1]):
            for p in range(in_ptr[node[q]], in_ptr[node[q] + 1]):
                if seen[src[p]] == s and gone[p] != s:
                    edges[max(hop[q], hop_of[src[p]])] += 1
