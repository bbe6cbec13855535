"""Subgraph GNNs made cheap without changing a single output.

model = enfa.DSGNN(in_channels=3, hidden_channels=32, out_channels=2, num_layers=4)  # or any module of your own
plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
logits = model(plan)
"""

from enfa import testing
from enfa.batch import CompiledDataset, DataLoader
from enfa.edits import (
    EdgeDeletion,
    EdgeMarking,
    EgoNets,
    MostCentral,
    NeighborMarking,
    NodeDeletion,
    NodeMarking,
    Policy,
    Reconstruction,
    Subgraph,
    Subsample,
)
from enfa.expressiveness import Power, power
from enfa.nn import (
    DSGNN,
    DSSGNN,
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
from enfa.nn.bag import Bag, Rows, compile, lift, load_compiled, make_plan, trace
from enfa.plan.step import Program

__version__ = "0.1.0"

__all__ = [
    "DSGNN",
    "DSSGNN",
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
    "MostCentral",
    "NeighborMarking",
    "NodeDeletion",
    "NodeMarking",
    "Policy",
    "Power",
    "Program",
    "Reconstruction",
    "Rows",
    "Step",
    "Subgraph",
    "Subgraphormer",
    "Subsample",
    "captured",
    "compile",
    "eagerly",
    "lift",
    "load_compiled",
    "make_plan",
    "power",
    "testing",
    "trace",
]
