"""Subgraph GNNs made cheap without changing a single output.

model = enfa.DSGNN(in_channels=3, hidden_channels=32, out_channels=2, num_layers=4)  # or any module of your own
plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
logits = model(plan)
"""

from typing import TYPE_CHECKING

from enfa.lazy import lazily

if TYPE_CHECKING:
    from enfa import testing
    from enfa.attribution import Explanation, explain
    from enfa.batch import CompiledDataset, DataLoader
    from enfa.edits import (
        EdgeDeletion,
        EdgeMarking,
        EgoNets,
        MostCentral,
        NeighborMarking,
        NodeDeletion,
        NodeMarking,
        PairMarking,
        Policy,
        Reconstruction,
        Subgraph,
        Subsample,
    )
    from enfa.expressiveness import Power, power
    from enfa.memory import keep_memory
    from enfa.nn import (
        DSGNN,
        DSSGNN,
        ESAN,
        GNNAK,
        I2GNN,
        IDGNN,
        NGNN,
        SSWLGNN,
        SUN,
        CountedBatchNorm,
        Step,
        Subgraphormer,
        captured,
        eagerly,
    )
    from enfa.nn.bag import Bag, Rows, ShardedDataset, load_compiled, make_plan
    from enfa.nn.bag.compile import compile
    from enfa.nn.bag.lift import lift
    from enfa.nn.bag.trace import trace
    from enfa.plan.step import Program
    from enfa.training.checkpoint import load
else:
    __getattr__, __dir__ = lazily(__name__, {
        "enfa.attribution": "Explanation explain",
        "enfa.batch": "CompiledDataset DataLoader",
        "enfa.edits": "EdgeDeletion EdgeMarking EgoNets MostCentral NeighborMarking NodeDeletion NodeMarking PairMarking "
        "Policy Reconstruction Subgraph Subsample",
        "enfa.expressiveness": "Power power",
        "enfa.memory": "keep_memory",
        "enfa.nn": "DSGNN DSSGNN ESAN GNNAK I2GNN IDGNN NGNN SSWLGNN SUN CountedBatchNorm Step Subgraphormer captured eagerly",
        "enfa.nn.bag": "Bag Rows ShardedDataset load_compiled make_plan",
        "enfa.nn.bag.compile": "compile",
        "enfa.nn.bag.lift": "lift",
        "enfa.nn.bag.trace": "trace",
        "enfa.plan.step": "Program",
        "enfa.training.checkpoint": "load",
    })  # fmt: skip

__version__ = "0.1.0"

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
    "Bag",
    "CompiledDataset",
    "CountedBatchNorm",
    "DataLoader",
    "EdgeDeletion",
    "EdgeMarking",
    "EgoNets",
    "Explanation",
    "MostCentral",
    "NeighborMarking",
    "NodeDeletion",
    "NodeMarking",
    "PairMarking",
    "Policy",
    "Power",
    "Program",
    "Reconstruction",
    "Rows",
    "ShardedDataset",
    "Step",
    "Subgraph",
    "Subgraphormer",
    "Subsample",
    "captured",
    "compile",
    "eagerly",
    "explain",
    "keep_memory",
    "lift",
    "load",
    "load_compiled",
    "make_plan",
    "power",
    "testing",
    "trace",
]
