"""One file per policy."""

from __future__ import annotations

import inspect
import re
from typing import Any

from enfa.edits.policies.edge_deletion import EdgeDeletion
from enfa.edits.policies.edge_marking import EdgeMarking
from enfa.edits.policies.ego_nets import EgoNets
from enfa.edits.policies.most_central import MostCentral
from enfa.edits.policies.neighbor_marking import NeighborMarking
from enfa.edits.policies.node_deletion import NodeDeletion
from enfa.edits.policies.node_marking import NodeMarking
from enfa.edits.policies.pair_marking import PairMarking
from enfa.edits.policies.reconstruction import Reconstruction
from enfa.edits.policies.subsample import Subsample
from enfa.edits.policy import Policy
from enfa.graphs.names import unknown
from enfa.own_code import found

__all__ = ["POLICIES", "policy_from"]

# of an argument that is a policy, or none; of lists of policies, say, the user's own code decides what to make
OF_POLICY = r"(<class '|(typing\.)?Optional\[)?([\w.]+\.)?Policy('>|\])?( \| None)?"

POLICIES: dict[str, type[Policy]] = {
    "node_marking": NodeMarking,
    "node_deletion": NodeDeletion,
    "edge_deletion": EdgeDeletion,
    "edge_marking": EdgeMarking,
    "ego_nets": EgoNets,
    "neighbor_marking": NeighborMarking,
    "pair_marking": PairMarking,
    "reconstruction": Reconstruction,
    "subsample": Subsample,
    "most_central": MostCentral,
}


def _is_policy(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Policy)


def policy_from(name: str, **params: Any) -> Policy:
    """A policy by name, as configuration files give it. A parameter that is a policy is a name, or a mapping.

    One of the user's own (:mod:`enfa.own_code`) is called as its class is.

    >>> policy_from("ego_nets", hops=2, mark=True)
    EgoNets(hops=2, mark=True, isolate=False)
    >>> policy_from("subsample", policy={"name": "node_deletion", "isolate": True}, count=3).policy
    NodeDeletion(isolate=True)
    >>> policy_from("subsample", policy="edge_deletion", fraction=0.5).policy
    EdgeDeletion()
    """
    cls: type[Policy] = found("the policy", name, POLICIES, _is_policy) or POLICIES[name]
    known = inspect.signature(cls).parameters
    for param in params:
        if param not in known:
            raise (
                unknown(f"a parameter of {name}", param, known)
                if known
                else ValueError(f"{name} has no parameters, got {param!r}")
            )
    for param, of in known.items():
        if of.default is inspect.Parameter.empty and param not in params:
            raise ValueError(f"Expected the parameter {param!r} for the policy {name}, got {sorted(params) or 'none'}")
    for param, value in params.items():
        of = known[param]
        if re.fullmatch(OF_POLICY, str(of.annotation)) and value is not of.default and not isinstance(value, Policy):
            params[param] = policy_from(value) if isinstance(value, str) else policy_from(**_named(param, value))
    return cls(**params)


def _named(param: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise ValueError(f"Expected {param} to be a policy's name, or a mapping with 'name' and parameters, got {value!r}")
    return value
