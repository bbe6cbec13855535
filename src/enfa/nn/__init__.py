"""Running models on plans."""

from enfa.nn.dropout import KeyedDropout
from enfa.nn.graphed import GraphedStep
from enfa.nn.models import DSGNN, DSSGNN
from enfa.nn.norm import CountedBatchNorm
from enfa.nn.rooted import link_places, root_nodes

__all__ = ["DSGNN", "DSSGNN", "CountedBatchNorm", "GraphedStep", "KeyedDropout", "link_places", "root_nodes"]
