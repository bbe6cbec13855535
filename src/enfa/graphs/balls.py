"""Which nodes are near which, for many centres at once."""

from dataclasses import dataclass

import numpy as np

from enfa.cache import numba_kernel
from enfa.graphs.graphset import GraphSet

__all__ = ["Balls", "balls", "distances_within"]


@dataclass(frozen=True)
class Balls:
    """Ball b has the nodes ``node[ptr[b]:ptr[b+1]]``, nearest first, at distances ``hop``."""

    ptr: np.ndarray  # int64 [B+1]
    node: np.ndarray  # int32
    hop: np.ndarray  # int16

    @property
    def ball(self) -> np.ndarray:
        """int64: the ball of each entry."""
        return np.repeat(np.arange(len(self.ptr) - 1), np.diff(self.ptr))


@numba_kernel
def _fill(
    first: int, center_ptr: np.ndarray, center: np.ndarray, hops: int, in_ptr: np.ndarray, src: np.ndarray,
    seen: np.ndarray, ptr: np.ndarray, node: np.ndarray, hop: np.ndarray,
) -> int:  # fmt: skip
    """Balls ``first``, … until all are done or ``node`` is full; returns the next one to do."""
    for b in range(first, len(ptr) - 1):
        begin = ptr[b]
        end = begin
        full = end + center_ptr[b + 1] - center_ptr[b] > len(node)
        if not full:
            for q in range(center_ptr[b], center_ptr[b + 1]):
                if seen[center[q]] != b:
                    seen[center[q]] = b
                    node[end] = center[q]
                    hop[end] = 0
                    end += 1
        at = begin
        while at < end and not full:
            if hop[at] < hops:
                v = node[at]
                full = end + in_ptr[v + 1] - in_ptr[v] > len(node)
                if full:
                    break
                for p in range(in_ptr[v], in_ptr[v + 1]):
                    w = src[p]
                    if seen[w] != b:
                        seen[w] = b
                        node[end] = w
                        hop[end] = hop[at] + 1
                        end += 1
            at += 1
        if full:
            for q in range(begin, end):
                seen[node[q]] = -1
            return b
        ptr[b + 1] = end
    return len(ptr) - 1


def balls(graphs: GraphSet, center_ptr: np.ndarray, center: np.ndarray, hops: int) -> Balls:
    """Around each list of centres all nodes from which one of them can be reached in at most ``hops`` edges.

    In an undirected graph that is the ordinary distance. Cost: the size of the balls.
    """
    count = len(center_ptr) - 1
    ptr = np.zeros(count + 1, np.int64)
    room = len(center) + 8 * count + int(np.diff(graphs.in_ptr).max(initial=0))
    node, hop = np.empty(room, np.int32), np.empty(room, np.int16)
    seen = np.full(graphs.num_nodes, -1, np.int64)
    done = 0
    while True:
        done = _fill(done, center_ptr, center, hops, graphs.in_ptr, graphs.src, seen, ptr, node, hop)
        if done == count:
            return Balls(ptr, node[: ptr[-1]], hop[: ptr[-1]])
        node = np.concatenate([node, np.empty(len(node), np.int32)])
        hop = np.concatenate([hop, np.empty(len(hop), np.int16)])


@numba_kernel
def _reach(
    ptr: np.ndarray, node: np.ndarray, target: np.ndarray, far: int, in_ptr: np.ndarray, src: np.ndarray,
    inside: np.ndarray, place: np.ndarray, queue: np.ndarray, hop: np.ndarray,
) -> None:  # fmt: skip
    for b in range(len(ptr) - 1):
        for q in range(ptr[b], ptr[b + 1]):
            inside[node[q]] = b
            place[node[q]] = q
            hop[q] = far
        if target[b] < 0 or inside[target[b]] != b:
            continue
        queue[0], end, at = target[b], 1, 0
        hop[place[target[b]]] = 0
        while at < end:
            v = queue[at]
            at += 1
            for p in range(in_ptr[v], in_ptr[v + 1]):
                w = src[p]
                if inside[w] == b and hop[place[w]] == far and hop[place[v]] + 1 < far:
                    hop[place[w]] = hop[place[v]] + 1
                    queue[end] = w
                    end += 1


def distances_within(graphs: GraphSet, near: Balls, target: np.ndarray, far: int) -> np.ndarray:
    """int64: of every entry of some balls how many edges within its ball lead to ``target[b]``; ``far`` where it is so many or
    more, or where ball b has no target, -1."""
    hop, largest = np.empty(len(near.node), np.int64), int(np.diff(near.ptr).max(initial=0))
    inside, place = np.full(graphs.num_nodes, -1, np.int64), np.empty(graphs.num_nodes, np.int64)
    _reach(near.ptr, near.node, target, far, graphs.in_ptr, graphs.src, inside, place, np.empty(largest, np.int64), hop)
    return hop
