"""SUN in its authors' code (github.com/beabevi/SUN), on marked 3-hop ego nets as for ZINC."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from peer_parts.missing import OGB, SCATTER, stand_in
from peer_parts.peer import Pairs, Peer, zinc

# what the authors' data.py imports of files and packages that are about other datasets
UNUSED = {
    "graph_property": "GraphPropertyDataset", "csl_data": "MyGNNBenchmarkDataset", "gnn_rni_data": "PlanarSATPairsDataset",
    "counting_data": "GraphCountDataset", "networkx": "Graph", "tqdm": "tqdm", "sklearn__model_selection": "StratifiedKFold",
}  # fmt: skip


def load(
    folder: Path,
    data: Path,
    count: int,
    cases: Sequence[str] = (),
    width: int = 64,
    layers: int = 6,
    policy: str = "ego_nets_plus",
) -> Iterator[Peer]:
    stood_in = stand_in(
        torch_scatter=SCATTER, torch_sparse={"matmul": None, "coalesce": None}, ogb__graphproppred__mol_encoder=OGB,
        **{name: {value: object} for name, value in UNUSED.items()},
    )  # fmt: skip
    import ogb.graphproppred

    for name in ("PygGraphPropPredDataset", "Evaluator"):
        if not hasattr(ogb.graphproppred, name):
            setattr(ogb.graphproppred, name, object)
    sys.path.insert(0, str(folder))
    from conv import ZINCGINConv
    from models import SUNnetwork, ZincAtomEncoder

    atoms = ZincAtomEncoder(policy=policy, emb_dim=width)
    atoms.enc = nn.Embedding(28, width)  # as many kinds of atoms as ZINC has
    theirs = SUNnetwork(
        num_layers=layers, in_dim=width + 2, emb_dim=width, num_tasks=1, feature_encoder=atoms, GNNConv=ZINCGINConv
    )
    ours = enfa.SUN([28], width, 1, layers, "gine", edge_channels=[4], mark_features=True)
    transform = import_module("data").policy2transform(policy, 3)

    def batch(graphs: Sequence[Data]) -> Any:
        from torch_geometric.loader import DataLoader

        made = [transform(Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr.view(-1), y=g.y)) for g in graphs]
        return next(iter(DataLoader(made, batch_size=len(made), follow_batch=["subgraph_idx"])))

    rule = enfa.EgoNets(3, mark=True, isolate=True)
    yield Peer("SUN", theirs, ours, _pairs(theirs, ours, atoms), rule, batch, stood_in, *zinc(data, count))


def _marks_last(value: Tensor) -> Tensor:
    """Marks stand first there, last here."""
    return torch.cat([value[:, 2:], value[:, :2]], 1)


def _pairs(theirs: Any, ours: Any, atoms: Any) -> Pairs:
    pairs = Pairs()

    def mlp(a: Any, b: Any, turned: Callable[[Tensor], Tensor]) -> None:
        pairs.add(a[0].weight, b[0].weight, turned)
        pairs.add(a[0].bias, b[0].bias)
        pairs.same(a[1], b[1])
        pairs.same(a[3], b[3])

    pairs.add(atoms.enc.weight, ours.encoder.embed.weight)
    for i, layer in enumerate(ours.layers):
        turned = (lambda value: value) if i else _marks_last
        for name, conv in (
            ("gnn_list", layer.conv), ("gnn_root_list", layer.root_conv), ("gnn_sum_list", layer.seen_conv),
            ("gnn_root_sum_list", layer.root_seen_conv),
        ):  # fmt: skip
            a = getattr(theirs, name)[i]
            pairs.add(a.eps, conv.eps)
            pairs.add(a.bond_encoder.weight, conv.edge.weight, lambda value, turned=turned: turned(value).T)
            mlp(a.mlp, conv.update, turned)
        for name, norm in (
            ("bn_list", layer.norm), ("bn_root_list", layer.root_norm), ("bn_sum_list", layer.seen_norm),
            ("bn_root_sum_list", layer.root_seen_norm),
        ):  # fmt: skip
            pairs.same(getattr(theirs, name)[i], norm)
        for name, part in (
            ("u_readout_list", layer.pooled), ("u_readout_root_list", layer.root_pooled), ("u_vv_list", layer.vv),
            ("u_kk_list", layer.kk), ("u_kv_list", layer.kv), ("u_vv_root_list", layer.root_vv),
        ):  # fmt: skip
            mlp(getattr(theirs, name)[i], part, turned)
    for i in (0, 3):
        pairs.same(theirs.final_layers[i], ours.head[i])
    return pairs
