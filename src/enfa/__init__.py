"""Subgraph GNNs made cheap without changing a single output.

model = enfa.DSGNN(in_channels=3, hidden_channels=32, out_channels=2, num_layers=4)  # or any module of your own
plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
logits = model(plan)
"""

from importlib import import_module
from typing import Any

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
from enfa.nn import DSGNN, DSSGNN, GNNAK, I2GNN, IDGNN, NGNN, SSWLGNN, SUN, CountedBatchNorm, Subgraphormer
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
    "Subgraph",
    "Subgraphormer",
    "Subsample",
    "compile",
    "explain",
    "lift",
    "load",
    "load_compiled",
    "make_plan",
    "power",
    "testing",
    "trace",
]

# what comes after all names above, and is loaded when it is asked for
_LATER = {"load": "enfa.training.checkpoint"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'enfa' has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)
