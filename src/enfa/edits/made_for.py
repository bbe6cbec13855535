"""Which policies models are made for, by the names that commands and configs give both. Needs no PyTorch."""

from __future__ import annotations

from enfa.edits.policies import POLICIES
from enfa.edits.policies.chosen import Chosen
from enfa.edits.policies.neighbor_marking import NeighborMarking
from enfa.edits.policy import Policy

__all__ = ["check_policy", "own_policy"]

# As commands take them; of three hops, and distances up to five, which is our choice: authors take several numbers of them.
_MADE_FOR = {
    "sswl": "node_marking:distances=5",
    "subgraphormer": "node_marking:distances=5",
    "ngnn": "ego_nets:hops=3:mark=distances",
    "id_gnn": "ego_nets:hops=3:mark=true",
    "gnn_ak": "ego_nets:hops=3:mark=distances",
    "i2gnn": "neighbor_marking:hops=3",
}


def own_policy(model: str) -> str:
    """The policy that a model is studied under where none is named.

    >>> own_policy("i2gnn"), own_policy("dss")
    ('neighbor_marking:hops=3', 'node_marking')
    """
    return _MADE_FOR.get(model, "node_marking")


def check_policy(model: str, policy: Policy) -> None:
    """Refuse I²-GNN where no neighbours are marked: it would run, but as another model. One's own policies may mark them."""
    inner = policy
    while isinstance(inner, Chosen):
        inner = inner.policy
    if model == "i2gnn" and type(inner) in POLICIES.values() and not isinstance(inner, NeighborMarking):
        raise ValueError(
            f"Expected a policy that marks a node and one of its neighbours for i2gnn, got {inner.name()}: use neighbor_marking"
        )
