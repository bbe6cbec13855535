"""Running models on plans."""

from enfa.nn.cuda.captured import GraphedForward, GraphedStep
from enfa.nn.cuda.captures import captured, eagerly
from enfa.nn.cuda.step import Step
from enfa.nn.models import DSGNN, DSSGNN, GNNAK, I2GNN, IDGNN, NGNN, SSWLGNN, SUN, Subgraphormer
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rooted import link_places, root_nodes

__all__ = [
    "DSGNN",
    "DSSGNN",
    "GNNAK",
    "I2GNN",
    "IDGNN",
    "NGNN",
    "SSWLGNN",
    "SUN",
    "CountedBatchNorm",
    "GraphedForward",
    "GraphedStep",
    "Step",
    "Subgraphormer",
    "captured",
    "eagerly",
    "link_places",
    "root_nodes",
]
