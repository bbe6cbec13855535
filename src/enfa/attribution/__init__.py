"""What a prediction comes from: gradients of the inputs, and what changes when a node's subgraph is left out."""

from enfa.attribution.explain import Explanation, explain

__all__ = ["Explanation", "explain"]
