"""DS-GNN: subgraphs do not see each other before their pools meet."""

from enfa.nn.models.base import SubgraphGNN

__all__ = ["DSGNN"]


class DSGNN(SubgraphGNN):
    """DS-GNN of Bevilacqua et al., "Equivariant Subgraph Aggregation Networks", ICLR 2022.

    Args:
        in_channels: number of float features, or a list of cardinalities for categorical columns.
        hidden_channels: width of every row.
        out_channels: width of the prediction.
        num_layers: message-passing layers.
        conv: ``"gin"``, ``"gine"``, ``"graphconv"``, ``"gcn"``, or a callable ``(in, out) -> PyG conv`` for a conv that
            takes ``(x_src, x_dst)``. Edge attributes reach it as they are (floats) or embedded to hidden_channels.
        edge_channels: like ``in_channels``, for edge attributes; None: the model reads none, whatever the graphs have.
            Refused for a conv that reads none.
        norm: ``"batch"``, ``"layer"`` or None.
        dropout: between layers (keyed by row) and in the head (ordinary).
        readout: ``"sum"``, ``"mean"`` or ``"max"`` over the nodes of a subgraph. Or, for node-level tasks, ``"root"``:
            the row of each subgraph's root in that subgraph (ID-GNN under node marking; of both ends of an edge-rooted
            one, added), or ``"node"``: every node's mean over the subgraphs that contain it.
        bag: ``"mean"`` or ``"sum"`` over the subgraphs of a bag.
        jk: jumping knowledge: ``"last"``, ``"concat"`` or ``"sum"`` of the layers.
        residual: add each layer's input where the widths agree.
        mark_channels: channels that the policy marks nodes with; 0 where it marks none.
        edge_mark_channels: channels that the policy marks edges with.
        share: ``"dataset"`` or ``"graph"``: how far rows, and so dropout masks, are shared. None: ``"graph"`` with
            dropout, so that one mask does not strike the same neighbourhood in a whole batch.
        independent_dropout: a mask for every copy of a row, as in conventional code; runs on the full plan only.

    Shapes: a plan of G graphs -> [G, out_channels]. With ``readout="root"``: [T, out_channels] for T subgraphs that
    have roots, whose nodes :func:`enfa.nn.root_nodes` tells; under node marking these are all nodes in order. With
    ``readout="node"``: [nodes, out_channels]. Without BatchNorm, a root readout computes only the rows that some
    root reads; with it all rows count for the statistics, so large graphs want ``norm="layer"``.
    """
