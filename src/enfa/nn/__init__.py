"""Running models on plans."""

from enfa.nn.graphed import GraphedForward, GraphedStep
from enfa.nn.models import DSGNN, DSSGNN
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.rooted import link_places, root_nodes

__all__ = [
    "DSGNN",
    "DSSGNN",
    "CountedBatchNorm",
    "GraphedForward",
    "GraphedStep",
    "link_places",
    "root_nodes",
]
