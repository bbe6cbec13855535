"""Running models on plans."""

from enfa.nn.dropout import KeyedDropout
from enfa.nn.graphed import GraphedStep
from enfa.nn.models import DSGNN, DSSGNN
from enfa.nn.norm import CountedBatchNorm

__all__ = ["DSGNN", "DSSGNN", "CountedBatchNorm", "GraphedStep", "KeyedDropout"]
