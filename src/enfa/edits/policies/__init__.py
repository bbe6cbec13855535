"""One file per policy."""

from __future__ import annotations

import inspect
from typing import Any

from enfa.edits.policies.edge_deletion import EdgeDeletion
from enfa.edits.policies.node_deletion import NodeDeletion
from enfa.edits.policies.node_marking import NodeMarking
from enfa.edits.policy import Policy
from enfa.graphs.names import unknown

__all__ = ["POLICIES", "policy_from"]

POLICIES: dict[str, type[Policy]] = {
    "node_marking": NodeMarking,
    "node_deletion": NodeDeletion,
    "edge_deletion": EdgeDeletion,
}


def policy_from(name: str, **params: Any) -> Policy:
    """A policy by name, as configuration files give it.

    >>> policy_from("node_deletion", isolate=True)
    NodeDeletion(isolate=True)
    """
    if name not in POLICIES:
        raise unknown("the policy", name, POLICIES)
    cls = POLICIES[name]
    known = inspect.signature(cls).parameters
    for param in params:
        if param not in known:
            raise unknown(f"a parameter of {name}", param, known) if known else ValueError(
                f"{name} has no parameters, got {param!r}"
            )
    return cls(**params)
