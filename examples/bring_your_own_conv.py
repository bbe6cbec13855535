"""A conv from PyG, GATv2, in a subgraph GNN: accelerated by one line, and checked against the conventional model."""

import torch
from torch_geometric.nn import GATv2Conv

import enfa
from enfa.testing import assert_same_as_full, random_graphs


def attention(channels_in: int, channels_out: int) -> GATv2Conv:
    """As PyG has it: docs/convs.md lists the others. A bias would be taken out again by the BatchNorm that follows."""
    return GATv2Conv(channels_in, channels_out // 2, heads=2, bias=False)


if __name__ == "__main__":
    torch.manual_seed(0)
    graphs = random_graphs(12, nodes=10)
    model = enfa.DSGNN(in_channels=3, hidden_channels=16, out_channels=2, num_layers=3, conv=attention)

    full = enfa.make_plan(graphs, enfa.NodeMarking(), model, kind="full")
    distinct = enfa.make_plan(graphs, enfa.NodeMarking(), model)
    print(f"rows computed in layers 1 to 3: full {full.cost().rows}, distinct {distinct.cost().rows}")

    # outputs, gradients, BatchNorm statistics, and the weights after five steps, in float64
    assert_same_as_full(model, enfa.NodeMarking(), graphs, steps=5)
    print("The same outputs, gradients and statistics as the conventional model.")
