"""I²-GNN: a node is what the ego nets of it say in which one of its neighbours is marked beside it."""

from typing import Any

from torch import Tensor, nn

from enfa.nn.bag.bag import Bag
from enfa.nn.models.base import ConvLike, check_choices
from enfa.nn.models.ego_nets.base import EgoGNN
from enfa.nn.rowwise.rows import Rows

__all__ = ["I2GNN"]


class I2GNN(EgoGNN):
    """I²-GNN of Huang et al., "Boosting the Cycle Counting Power of Graph Neural Networks with I²-GNNs", ICLR 2023, for
    :class:`~enfa.NeighborMarking`.

    h_(i,j,k) of node k in the subgraph of node i and its neighbour j is pooled three times: over k to h_(i,j) (R_edge, here
    ``pool``), over j to h_i (R_node, ``neighbors``), and over i to the graph (R_graph, ``readout``), with an MLP after each.

    Args:
        pool: ``"sum"``, ``"mean"``, ``"max"`` or ``"root"`` over the nodes k of a subgraph.
        neighbors: ``"sum"``, ``"mean"`` or ``"max"`` over the subgraphs of a node, one for each neighbour j.
        readout: ``"sum"``, ``"mean"`` or ``"max"`` over the nodes i, or ``"node"``: every node by itself, as for counting the
            cycles that it lies on.
        mark_every_layer: as in :class:`~enfa.NGNN`; the authors' code does it.

    All other arguments are those of :class:`~enfa.DSGNN`; it takes no ``bag``. ``mark_channels`` is the policy's, 2 by default.
    """

    def __init__(
        self, in_channels: Any, hidden_channels: int, out_channels: int, num_layers: int, conv: ConvLike = "gin", *,
        neighbors: str = "mean", mark_channels: int = 2, **options: Any,
    ) -> None:  # fmt: skip
        check_choices(neighbors=(neighbors, ("sum", "mean", "max")))
        first = in_channels, hidden_channels, out_channels, num_layers, conv
        super().__init__(*first, mark_channels=mark_channels, **options)
        self.neighbors = neighbors
        self.node_mlp = nn.Sequential(nn.Linear(hidden_channels, hidden_channels), nn.ReLU())

    def _read_out(self, bag: Bag, h: Rows) -> Tensor:
        about = self.about(bag, h)  # h_(i,j)
        nodes = self.node_mlp(bag.pool(about, self.neighbors, to="nodes"))  # h_i
        return bag.each(nodes) if self.readout == "node" else bag.pool(nodes, self.readout)
