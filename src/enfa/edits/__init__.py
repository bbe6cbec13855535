"""Edits: what turns a graph into the subgraphs of its bag."""

from enfa.edits.edits import DELETE, Edits
from enfa.edits.policies.edge_deletion import EdgeDeletion
from enfa.edits.policies.node_deletion import NodeDeletion
from enfa.edits.policies.node_marking import NodeMarking
from enfa.edits.policy import GraphView, Policy, Subgraph

__all__ = ["DELETE", "EdgeDeletion", "Edits", "GraphView", "NodeDeletion", "NodeMarking", "Policy", "Subgraph"]
