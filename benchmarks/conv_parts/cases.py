"""Every conv of torch_geometric.nn.conv as a user would make it, and what it is given beside features and edges.

``more`` makes the further arguments from the features of nodes and the attributes of edges, by operations that tensors and Rows
have alike. Node features are [h, hidden width]; edge attributes two columns of floats.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch_geometric import nn as pyg

__all__ = ["CASES", "OUT_OF_SCOPE", "WIDTH", "Case"]

WIDTH = 6


@dataclass(frozen=True)
class Case:
    """``make``: the conv; ``more``: of features and edge attributes, its further arguments; ``note``: how it is made."""

    name: str
    make: Callable[[], nn.Module]
    more: Callable[[Any, Any], dict[str, Any]] | None = None
    note: str = ""

    @property
    def reads_edges(self) -> bool:
        return self.more not in (None, _position, _oriented, _start)


def _mlp(ins: int = WIDTH) -> nn.Module:
    return nn.Sequential(nn.Linear(ins, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH))


def _attr(h: Any, e: Any) -> dict[str, Any]:
    return {"edge_attr": e}


def _weight(h: Any, e: Any) -> dict[str, Any]:
    return {"edge_weight": e[:, 0].abs() + 0.5}


def _type(h: Any, e: Any) -> dict[str, Any]:
    return {"edge_type": (e[:, 0] > 0).long()}


def _position(h: Any, e: Any) -> dict[str, Any]:
    return {"pos": h[:, :3]}


def _oriented(h: Any, e: Any) -> dict[str, Any]:
    return {"pos": h[:, :3], "normal": h[:, 3:]}


def _heat(h: Any, e: Any) -> dict[str, Any]:
    return {"node_type": (h[:, 0] > 0).long(), "edge_type": (e[:, 0] > 0).long(), "edge_attr": e}


def _start(h: Any, e: Any) -> dict[str, Any]:
    return {"x_0": h.tanh()}


_W = WIDTH
_DEGREES = torch.tensor([1, 4, 4, 2, 1])
CASES = [
    Case("SimpleConv", lambda: pyg.SimpleConv(aggr="mean", combine_root="cat")),
    Case("SimpleConv", lambda: pyg.SimpleConv(combine_root="self_loop"), note="combine_root='self_loop'"),
    Case("GCNConv", lambda: pyg.GCNConv(_W, _W)),
    Case("GCNConv", lambda: pyg.GCNConv(_W, _W, improved=True), note="improved=True"),
    Case("GCNConv", lambda: pyg.GCNConv(_W, _W, improved=True), _weight, "improved=True, with edge_weight"),
    Case("GCNConv", lambda: pyg.GCNConv(_W, _W, add_self_loops=False), note="add_self_loops=False"),
    Case("ChebConv", lambda: pyg.ChebConv(_W, _W, 3)),
    Case("SAGEConv", lambda: pyg.SAGEConv(_W, _W)),
    Case("SAGEConv", lambda: pyg.SAGEConv(_W, _W, aggr="max", project=True), note="aggr='max', project=True"),
    Case("GraphConv", lambda: pyg.GraphConv(_W, _W)),
    Case("GraphConv", lambda: pyg.GraphConv(_W, _W, aggr="mean"), _weight, "aggr='mean', with edge_weight"),
    Case("GatedGraphConv", lambda: pyg.GatedGraphConv(_W, 2)),
    Case("ResGatedGraphConv", lambda: pyg.ResGatedGraphConv(_W, _W)),
    Case("ResGatedGraphConv", lambda: pyg.ResGatedGraphConv(_W, _W, edge_dim=2), _attr, "with edge_attr"),
    Case("GATConv", lambda: pyg.GATConv(_W, 3, heads=2)),
    Case("GATConv", lambda: pyg.GATConv(_W, 3, heads=2, edge_dim=2, residual=True), _attr, "residual=True, with edge_attr"),
    Case("GATConv", lambda: pyg.GATConv(_W, 3, heads=2, dropout=0.5), note="dropout=0.5"),
    Case("GATv2Conv", lambda: pyg.GATv2Conv(_W, 3, heads=2)),
    Case("GATv2Conv", lambda: pyg.GATv2Conv(_W, 3, 2, edge_dim=2, share_weights=True), _attr, "shared weights, edge_attr"),
    Case("TransformerConv", lambda: pyg.TransformerConv(_W, 3, heads=2, beta=True)),
    Case("TransformerConv", lambda: pyg.TransformerConv(_W, 3, heads=2, edge_dim=2), _attr, "with edge_attr"),
    Case("AGNNConv", lambda: pyg.AGNNConv()),
    Case("TAGConv", lambda: pyg.TAGConv(_W, _W, K=2)),
    Case("GINConv", lambda: pyg.GINConv(_mlp(), train_eps=True)),
    Case("GINEConv", lambda: pyg.GINEConv(_mlp(), edge_dim=2), _attr, "with edge_attr"),
    Case("ARMAConv", lambda: pyg.ARMAConv(_W, _W, num_stacks=2, num_layers=2)),
    Case("SGConv", lambda: pyg.SGConv(_W, _W, K=2)),
    Case("SSGConv", lambda: pyg.SSGConv(_W, _W, alpha=0.1, K=2)),
    Case("APPNP", lambda: pyg.APPNP(K=2, alpha=0.1)),
    Case("MFConv", lambda: pyg.MFConv(_W, _W, max_degree=4)),
    Case("RGCNConv", lambda: pyg.RGCNConv(_W, _W, 2), _type, "with edge_type"),
    Case("RGCNConv", lambda: pyg.RGCNConv(_W, _W, 2, num_bases=2, root_weight=False), _type, "num_bases=2, with edge_type"),
    Case("RGCNConv", lambda: pyg.RGCNConv(_W, _W, 2, num_blocks=2), _type, "num_blocks=2, with edge_type"),
    Case("FastRGCNConv", lambda: pyg.FastRGCNConv(_W, _W, 2), _type, "with edge_type"),
    Case("FastRGCNConv", lambda: pyg.FastRGCNConv(_W, _W, 2, num_blocks=2), _type, "num_blocks=2, with edge_type"),
    Case("RGATConv", lambda: pyg.RGATConv(_W, 3, 2, heads=2), _type, "with edge_type"),
    Case("SignedConv", lambda: pyg.SignedConv(_W, _W, True)),
    Case("DNAConv", lambda: pyg.DNAConv(_W)),
    Case("PointNetConv", lambda: pyg.PointNetConv(_mlp(_W + 3), _mlp()), _position, "with pos"),
    Case("GMMConv", lambda: pyg.GMMConv(_W, _W, dim=2, kernel_size=2), _attr, "with edge_attr"),
    Case("NNConv", lambda: pyg.NNConv(_W, _W, nn.Linear(2, _W * _W)), _attr, "with edge_attr"),
    Case("CGConv", lambda: pyg.CGConv(_W, dim=2, batch_norm=True), _attr, "batch_norm=True, with edge_attr"),
    Case("EdgeConv", lambda: pyg.EdgeConv(_mlp(2 * _W))),
    Case("PPFConv", lambda: pyg.PPFConv(_mlp(_W + 4), _mlp()), _oriented, "with pos, normal"),
    Case("FeaStConv", lambda: pyg.FeaStConv(_W, _W, heads=2)),
    Case("PointTransformerConv", lambda: pyg.PointTransformerConv(_W, _W), _position, "with pos"),
    Case("HypergraphConv", lambda: pyg.HypergraphConv(_W, _W)),
    Case("LEConv", lambda: pyg.LEConv(_W, _W)),
    Case("LEConv", lambda: pyg.LEConv(_W, _W), _weight, "with edge_weight"),
    Case("PNAConv", lambda: pyg.PNAConv(_W, _W, ["mean", "max", "std"], ["identity", "amplification"], _DEGREES)),
    Case("PNAConv", lambda: pyg.PNAConv(_W, _W, ["sum", "min"], ["linear"], _DEGREES, edge_dim=2), _attr, "with edge_attr"),
    Case("ClusterGCNConv", lambda: pyg.ClusterGCNConv(_W, _W)),
    Case("GENConv", lambda: pyg.GENConv(_W, _W, norm="layer")),
    Case("GENConv", lambda: pyg.GENConv(_W, _W, aggr="powermean", edge_dim=2), _attr, "aggr='powermean', with edge_attr"),
    Case("GCN2Conv", lambda: pyg.GCN2Conv(_W, alpha=0.1), _start, "with x_0"),
    Case("WLConv", lambda: pyg.WLConv()),
    Case("WLConvContinuous", lambda: pyg.WLConvContinuous()),
    Case("FiLMConv", lambda: pyg.FiLMConv(_W, _W)),
    Case("FiLMConv", lambda: pyg.FiLMConv(_W, _W, num_relations=2), _type, "num_relations=2, with edge_type"),
    Case("SuperGATConv", lambda: pyg.SuperGATConv(_W, 3, heads=2)),
    Case("FAConv", lambda: pyg.FAConv(_W, eps=0.1), _start, "with x_0"),
    Case("EGConv", lambda: pyg.EGConv(_W, _W, ["symnorm", "max"], num_heads=2)),
    Case("PDNConv", lambda: pyg.PDNConv(_W, _W, edge_dim=2, hidden_channels=4), _attr, "with edge_attr"),
    Case("GeneralConv", lambda: pyg.GeneralConv(_W, _W)),
    Case("GeneralConv", lambda: pyg.GeneralConv(_W, _W, 2, attention=True), _attr, "attention=True, with edge_attr"),
    Case("HEATConv", lambda: pyg.HEATConv(_W, 3, 2, 2, 2, 2, 2, heads=2), _heat, "with types and edge_attr"),
    Case("LGConv", lambda: pyg.LGConv()),
    Case("PointGNNConv", lambda: pyg.PointGNNConv(nn.Linear(_W, 3), nn.Linear(_W + 3, _W), _mlp()), _position, "with pos"),
    Case("GPSConv", lambda: pyg.GPSConv(_W, pyg.GINConv(_mlp()))),
    Case("AntiSymmetricConv", lambda: pyg.AntiSymmetricConv(_W)),
    Case("DirGNNConv", lambda: pyg.DirGNNConv(pyg.SAGEConv(_W, _W))),
    Case("MixHopConv", lambda: pyg.MixHopConv(_W, 2)),
]  # fmt: skip
OUT_OF_SCOPE = {
    "MessagePassing": "the base class", "SplineConv": "needs pyg-lib", "PANConv": "needs torch-sparse",
    "CuGraphSAGEConv": "needs cuGraph's own graphs", "CuGraphGATConv": "needs cuGraph's own graphs",
    "CuGraphRGCNConv": "needs cuGraph's own graphs", "FusedGATConv": "needs dgNN's own graphs, and a GPU",
    "GravNetConv": "makes its edges from the features", "DynamicEdgeConv": "makes its edges from the features",
    "XConv": "makes its edges from the features", "HGTConv": "needs several types of nodes",
    "HeteroConv": "needs several types of nodes", "HANConv": "needs several types of nodes", "MeshCNNConv": "needs meshes",
}  # fmt: skip
