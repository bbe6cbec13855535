"""A model of one's own for molecules, which enfa train takes by its name:

enfa train molecules.csv --target soluble --skip-bad --code examples/molecule_net.py model=MoleculeNet
"""

from torch import nn
from torch_geometric.nn import MLP, GINEConv

import enfa


class Embed(nn.Module):
    """Categories of several columns: the sum of an embedding of each."""

    def __init__(self, counts, channels):
        super().__init__()
        self.columns = nn.ModuleList(nn.Embedding(count, channels) for count in counts)

    def forward(self, x):
        return sum(column(x[:, k]) for k, column in enumerate(self.columns))


class MoleculeNet(nn.Module):
    """What the data say comes as in_channels, out_channels and edge_channels; the rest are settings, or model_params."""

    def __init__(self, in_channels, out_channels, edge_channels, hidden_channels=64, num_layers=4, head=128):
        super().__init__()
        width = hidden_channels
        self.atoms, self.mark = Embed(in_channels, width), nn.Linear(1, width)
        self.bonds = nn.ModuleList(Embed(edge_channels, width) for _ in range(num_layers))
        self.convs = nn.ModuleList(GINEConv(MLP([width, width, width])) for _ in range(num_layers))
        self.norms = nn.ModuleList(nn.BatchNorm1d(width) for _ in range(num_layers))
        self.head = MLP([width, head, out_channels])

    def forward(self, bag):
        h = self.atoms(bag.x) + self.mark(bag.mark)
        for bonds, conv, norm in zip(self.bonds, self.convs, self.norms):
            h = h + norm(bag.propagate(conv, h, bonds(bag.edge_attr))).relu()
        return self.head(bag.pool(bag.pool(h, "mean"), "mean"))


if __name__ == "__main__":
    from enfa.datasets import from_smiles
    from enfa.datasets.molecules import ATOM_CHANNELS, BOND_CHANNELS

    graphs = from_smiles(["CCO", "c1ccccc1", "CC(=O)O", "C"])
    model = MoleculeNet(ATOM_CHANNELS, 1, BOND_CHANNELS, hidden_channels=16)
    enfa.testing.assert_same_as_full(model, enfa.NodeMarking(), graphs)
    print("The same outputs from distinct rows")
