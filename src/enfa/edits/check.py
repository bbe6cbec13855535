"""Refusing edits that make no sense."""

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet

__all__ = ["check_edits", "edits_by"]


def _place(edits: Edits, sub: int) -> str:
    """A subgraph, in words."""
    graph = int(edits.graph[sub])
    return f"graph {graph}: subgraph {sub - edits.sub_ptr[graph]}"


def _check_targets(graphs: GraphSet, edits: Edits, policy: str, what: str) -> None:
    """Inside the graph, a value that exists, and no target twice."""
    if what == "node":
        ptr, target, value, own, marks = edits.node_ptr, edits.node, edits.node_value, graphs.node_ptr, edits.marks
    else:
        ptr, target, value, own, marks = edits.edge_ptr, edits.edge, edits.edge_value, graphs.edge_ptr, edits.edge_marks
    sub = np.repeat(np.arange(edits.num_subgraphs), np.diff(ptr))
    graph = edits.graph[sub]
    bad = (target < own[graph]) | (target >= own[graph + 1])
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"{policy}: graph {graph[i]} has {own[graph[i] + 1] - own[graph[i]]} {what}s, but subgraph "
            f"{sub[i] - edits.sub_ptr[graph[i]]} of its bag edits {what} {target[i] - own[graph[i]]}"
        )
    keeps = edits.kept[sub] & (what == "node")
    bad = ((value != DELETE) | keeps) & ((value < np.where(keeps, 0, 1)) | (value >= len(marks)))
    if bad.any():
        i = int(np.argmax(bad))
        raise ValueError(
            f"{policy}: graph {graph[i]}: Expected a {what} edit to be DELETE or a mark {_listed(len(marks))} "
            f"(or, in a subgraph that lists its nodes, 0), got {value[i]}"
        )
    key = np.sort(sub * (int(own[-1]) + 1) + target)
    twice = key[1:][key[1:] == key[:-1]]
    if len(twice):
        s, t = divmod(int(twice[0]), int(own[-1]) + 1)
        first = graphs.node_ptr[edits.graph[s]]
        # an edge by its ends: it has another number in the input
        which = f"node {t - first}" if what == "node" else f"the edge {graphs.src[t] - first} -> {graphs.dst[t] - first}"
        raise ValueError(f"{policy}: {_place(edits, s)} edits {which} twice")


def _listed(count: int) -> str:
    """Rows of marks; the first is that of what is not marked."""
    return f"from 1 to {count - 1}" if count > 1 else "(the policy has none: row 0 of its marks is unmarked)"


def _lacks(graphs: GraphSet, edits: Edits, sub: np.ndarray, node: np.ndarray) -> np.ndarray:
    """bool: whether subgraph ``sub`` lacks ``node``."""
    there = edits.node_value != DELETE
    if there.all() and not edits.kept.any():
        return np.zeros(len(sub), bool)
    width = graphs.num_nodes + 1
    of_edit = np.repeat(np.arange(edits.num_subgraphs), np.diff(edits.node_ptr))
    keys = of_edit * width + edits.node
    wanted = sub * width + node
    return np.where(edits.kept[sub], ~np.isin(wanted, keys[there]), np.isin(wanted, keys[~there]))


def _check_contradictions(graphs: GraphSet, edits: Edits, policy: str) -> None:
    """No mark on an edge whose end is deleted, no root that is."""
    sub = np.repeat(np.arange(edits.num_subgraphs), np.diff(edits.edge_ptr))
    marks = edits.edge_value != DELETE
    sub, edge = sub[marks], edits.edge[marks]
    for ends in (graphs.src, graphs.dst):
        gone = _lacks(graphs, edits, sub, ends[edge])
        if gone.any():
            i = int(np.argmax(gone))
            first = graphs.node_ptr[edits.graph[sub[i]]]
            raise ValueError(
                f"{policy}: {_place(edits, sub[i])} marks the edge {graphs.src[edge[i]] - first} -> "
                f"{graphs.dst[edge[i]] - first} and deletes node {ends[edge[i]] - first}"
            )
    if edits.root is None:
        return
    mixed = (edits.root >= 0).any(axis=1) != (edits.root >= 0).all(axis=1)
    if mixed.any():
        s = int(np.argmax(mixed))
        raise ValueError(f"{policy}: {_place(edits, s)} has some roots and lacks others: {edits.root[s].tolist()}")
    for column in edits.root.T:
        rooted = np.flatnonzero(column >= 0)
        outside = graphs.graph[np.minimum(column[rooted], graphs.num_nodes - 1)] != edits.graph[rooted]
        gone = outside | (column[rooted] >= graphs.num_nodes) | _lacks(graphs, edits, rooted, column[rooted])
        if gone.any():
            s = int(rooted[np.argmax(gone)])
            node = column[s] - graphs.node_ptr[edits.graph[s]]
            raise ValueError(f"{policy}: {_place(edits, s)} has node {node} as its root, but does not contain it")


def _check_arrays(graphs: GraphSet, edits: Edits, policy: str) -> None:
    """A policy of one's own may make its edits as it likes."""
    if not isinstance(edits, Edits):
        raise TypeError(f"{policy}: Expected edits(graphs) to return Edits, got {type(edits).__name__}")
    for name in ("sub_ptr", "node_ptr", "node", "node_value", "edge_ptr", "edge", "edge_value", "root"):
        array = getattr(edits, name)
        if array is not None and array.dtype.kind not in "iu":
            raise TypeError(f"{policy}: Expected '{name}' of the edits to hold integers, got {array.dtype}")
    if edits.keeps is not None and edits.keeps.dtype != bool:  # 0 and 1 would be taken for numbers of subgraphs
        raise TypeError(f"{policy}: Expected 'keeps' of the edits to hold true and false, got {edits.keeps.dtype}")
    for name in ("sub_ptr", "node_ptr", "edge_ptr"):
        ptr = getattr(edits, name)
        if ptr.ndim != 1 or not len(ptr) or ptr[0] != 0 or (np.diff(ptr) < 0).any():
            got = f"shape {list(ptr.shape)}"
            raise ValueError(f"{policy}: Expected '{name}' of the edits to begin with 0 and never to fall, got {got}")
    subs = edits.num_subgraphs
    lengths = {
        "sub_ptr": graphs.num_graphs + 1, "node_ptr": edits.sub_ptr[-1] + 1, "edge_ptr": edits.sub_ptr[-1] + 1, "keeps": subs,
        "root": subs, "node": edits.node_ptr[-1], "node_value": edits.node_ptr[-1], "edge": edits.edge_ptr[-1],
        "edge_value": edits.edge_ptr[-1],
    }  # fmt: skip
    for name, length in lengths.items():
        array = getattr(edits, name)
        if array is not None and (array.ndim != 1 + (name == "root") or len(array) != length):
            got = f"shape {list(array.shape)}"
            raise ValueError(f"{policy}: Expected '{name}' of the edits to have {length} entries, got {got}")
    if edits.root is not None and edits.root.shape[1] not in (1, 2):
        raise ValueError(f"{policy}: Expected 'root' of the edits of shape [{subs}, 1 or 2], got {list(edits.root.shape)}")
    for name in ("marks", "edge_marks"):
        table = getattr(edits, name)
        if table.ndim != 2 or not len(table) or not np.isfinite(table).all():
            raise ValueError(
                f"{policy}: Expected '{name}' to be finite numbers of shape [values, channels], at least one value, "
                f"got {table.tolist()}"
            )


def check_edits(graphs: GraphSet, edits: Edits, policy: str) -> Edits:
    """Refuse edits outside their graph and edits that contradict each other."""
    _check_arrays(graphs, edits, policy)
    _check_targets(graphs, edits, policy, "node")
    _check_targets(graphs, edits, policy, "edge")
    _check_contradictions(graphs, edits, policy)
    return edits


def edits_by(policy: Policy, graphs: GraphSet) -> Edits:
    """What a policy makes of some graphs, checked."""
    if not isinstance(policy, Policy):
        got = f"the class {policy.__name__}" if isinstance(policy, type) else type(policy).__name__  # a model's repr is long
        got = repr(policy) if isinstance(policy, str) else got
        raise TypeError(f"Expected an enfa.Policy such as enfa.NodeMarking(), got {got}")
    return check_edits(graphs, policy.edits(graphs), repr(policy))
