"""Edits: what turns a graph into the subgraphs of its bag."""

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policies import POLICIES, policy_from
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
from enfa.edits.policy import GraphView, Policy, Subgraph

__all__ = [
    "DELETE", "POLICIES", "EdgeDeletion", "EdgeMarking", "Edits", "EgoNets", "GraphView", "MostCentral", "NeighborMarking",
    "NodeDeletion", "NodeMarking", "PairMarking", "Policy", "Reconstruction", "Subgraph", "Subsample", "policy_from",
]  # fmt: skip
