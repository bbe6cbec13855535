"""Running models on plans."""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa.nn.cuda.captured import GraphedForward
    from enfa.nn.cuda.captures import captured, eagerly
    from enfa.nn.cuda.step import GraphedStep, Step
    from enfa.nn.models import DSGNN, DSSGNN, ESAN, GNNAK, I2GNN, IDGNN, NGNN, SSWLGNN, SUN, Subgraphormer
    from enfa.nn.ops.norm import CountedBatchNorm
    from enfa.nn.rooted import link_places, root_nodes
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.nn.cuda.captured": "GraphedForward",
        "enfa.nn.cuda.captures": "captured eagerly",
        "enfa.nn.cuda.step": "GraphedStep Step",
        "enfa.nn.models": "DSGNN DSSGNN ESAN GNNAK I2GNN IDGNN NGNN SSWLGNN SUN Subgraphormer",
        "enfa.nn.ops.norm": "CountedBatchNorm",
        "enfa.nn.rooted": "link_places root_nodes",
    })  # fmt: skip

__all__ = [
    "DSGNN",
    "DSSGNN",
    "ESAN",
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
