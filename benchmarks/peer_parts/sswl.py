"""GNN-SSWL+ in its authors' code (github.com/subgraph23/SWL), in their setting for ZINC."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Batch, Data

import enfa
from peer_parts.missing import OGB, SCATTER, stand_in
from peer_parts.peer import Pairs, Peer, zinc

LAYER, POOL = ["uL", "vL", "vv"], "uG"


def load(folder: Path, data: Path, count: int, cases: Sequence[str] = (), width: int = 96, layers: int = 6) -> Iterator[Peer]:
    stood_in = stand_in(torch_scatter=SCATTER, ogb__graphproppred__mol_encoder=OGB)
    sys.path.insert(0, str(folder))
    from src.model import GNN, Agg
    from src.utils import subgraph

    theirs = GNN(width, 1, 5, True, As=[(Agg(LAYER), width)] * layers + [(Agg([POOL], gin=False), width)])
    ours = enfa.SSWLGNN([119], width, 1, layers, "gine", edge_channels=[5], mark_channels=6)
    transform = subgraph([*LAYER, POOL])

    def batch(graphs: Sequence[Data]) -> Any:
        made = [transform(Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr.view(-1), y=g.y)) for g in graphs]
        for one in made:  # recent PyG collates no bools that are named index
            for key in [key for key, value in one.to_dict().items() if value is False]:
                del one[key]
        return Batch.from_data_list(made)

    rule = enfa.NodeMarking(distances=4)
    yield Peer("GNN-SSWL+", theirs, ours, _pairs(theirs, ours), rule, batch, stood_in, *zinc(data, count))


def _pairs(theirs: Any, ours: Any) -> Pairs:
    pairs = Pairs()

    def mlp(a: Any, b: Any) -> None:
        for x, y in ((a.input, b[0]), (a.input_nr.bn, b[1]), (a.output, b[3])):
            pairs.same(x, y)

    pairs.add(theirs.encode.embed_v.tables[0].weight, ours.encoder.embed.weight)
    pairs.add(theirs.encode.embed_d.weight, ours.encoder.mark.weight, torch.t)
    for i, layer in enumerate(ours.layers):
        a = getattr(theirs, f"A{i}")
        for name, conv in (("uL", layer.conv), ("vL", layer.between)):
            pairs.add(a.eps[name], conv.eps)
            pairs.add(a.enc[name].embed.tables[0].weight, conv.edge.weight, torch.t)
            mlp(a.mlp[name], conv.update)
        pairs.add(a.eps["vv"], layer.eps)
        mlp(a.mlp["vv"], layer.point)
        pairs.same(a.nr.bn, layer.norm)
    last = getattr(theirs, f"A{len(ours.layers)}")
    mlp(last.mlp[POOL], ours.subgraph_mlp[:4])
    pairs.same(last.nr.bn, ours.subgraph_mlp[4])
    for x, y in ((theirs.pool.predict.input, ours.head[0]), (theirs.pool.predict.output, ours.head[3])):
        pairs.same(x, y)
    return pairs
