"""Breadth-first walks from the pivots of every subgraph."""

from numba import njit

__all__ = ["ego_nets"]


@njit(cache=True, nogil=True)
def ego_nets(
    first, limit, graph, graph_nodes, keeps, out_ptr, out_edge, dst, node_ptr, node, node_value, edge_ptr, edge,
    edge_value, seen, gone, ptr, found, hops,
):  # fmt: skip
    """Nodes within ``limit`` hops, nearest first, from subgraph ``first`` on until the room is used up.

    A subgraph that keeps nodes consists of these alone, all at hop 0.
    """
    for s in range(first, len(graph)):
        if ptr[s] + graph_nodes[graph[s]] > len(found):
            return s
        begin = end = ptr[s]
        if keeps[s]:
            for q in range(node_ptr[s], node_ptr[s + 1]):
                found[end] = node[q]
                hops[end] = 0
                end += 1
            ptr[s + 1] = end
            continue
        for q in range(node_ptr[s], node_ptr[s + 1]):
            if node_value[q] < 0:
                seen[node[q]] = s  # not there: never reached
        for q in range(edge_ptr[s], edge_ptr[s + 1]):
            if edge_value[q] < 0:
                gone[edge[q]] = s
            if seen[dst[edge[q]]] != s:
                seen[dst[edge[q]]] = s
                found[end] = dst[edge[q]]
                end += 1
        for q in range(node_ptr[s], node_ptr[s + 1]):
            v = node[q]
            if node_value[q] > 0 and seen[v] != s:
                seen[v] = s
                found[end] = v
                end += 1
            elif node_value[q] < 0:
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    w = dst[out_edge[p]]
                    if seen[w] != s:
                        seen[w] = s
                        found[end] = w
                        end += 1
        for q in range(begin, end):
            hops[q] = 0
        at = begin
        while at < end:
            if hops[at] < limit:
                v = found[at]
                for p in range(out_ptr[v], out_ptr[v + 1]):
                    w = dst[out_edge[p]]
                    if seen[w] != s and gone[out_edge[p]] != s:
                        seen[w] = s
                        found[end] = w
                        hops[end] = hops[at] + 1
                        end += 1
            at += 1
        ptr[s + 1] = end
    return len(graph)
