"""NGNN: a GNN on the ego net of every node, whose pool is that node's row."""

from enfa.nn.models.ego_nets.base import EgoGNN

__all__ = ["NGNN"]


class NGNN(EgoGNN):
    """Nested GNN of Zhang and Li, "Nested Graph Neural Networks", NeurIPS 2021, for :class:`~enfa.EgoNets`.

    A base GNN passes messages in every ego net; ``pool`` makes what the root is of an ego net's nodes (the paper's subgraph
    pooling, R_0), and ``readout`` what the graph is of the roots (its graph pooling, R_1).

    Args:
        pool: ``"sum"``, ``"mean"`` or ``"max"`` over the nodes of a subgraph, or ``"root"``, the root's own row there (center
            pooling in the authors' code). An MLP follows.
        readout: ``"sum"``, ``"mean"`` or ``"max"`` over the nodes of the graph, each of which is what the subgraph about it was
            pooled to; or ``"node"``: every node by itself, zero where it is the root of no subgraph.
        mark_every_layer: every layer reads an embedding of the marks beside its rows, as in the code of I²-GNN's authors;
            otherwise the first layer alone reads the marks.

    All other arguments are those of :class:`~enfa.DSGNN`; it takes no ``bag``. With ``EgoNets(hops, mark="distances")``,
    whose labels are those of the paper, ``mark_channels=hops + 2``.

    Shapes: a plan of G graphs -> [G, out_channels]. With ``readout="node"``: [nodes, out_channels].
    """
