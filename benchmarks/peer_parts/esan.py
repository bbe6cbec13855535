"""DS-GNN in its authors' code (github.com/beabevi/ESAN), on the graphs and in the sizes of benchmarks/gpu.py.

Theirs is their DSnetwork around their GNN: ``originalgin`` where the case has GIN, ``gin`` (GINE with an MLP twice as wide
inside, a mean over nodes and no last ReLU) where it has GINE; no dropout. Ours is :class:`enfa.ESAN`. Their node deletion is
used as it is, with the layers over the bag that they take for these datasets, two of them; node marking with the one that they
take for ZINC (``invariant``), which leaves our rows shared between graphs, as with a DSGNN. Node marking is a policy on their
``Graph2Subgraph``, with the mark before the features. A newer PyG passes ``__inc__`` a further argument and shifts what has
"batch" in its name: theirs is made to do as with the PyG that it was written for. For torch.compile and CUDA graphs, pools
and scatters are told their sizes, which their code would count on the GPU.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import enfa
from gpu_parts.cases import CASES, Case
from peer_parts.missing import OGB, SCATTER, SIZE, stand_in
from peer_parts.peer import Pairs, Peer, of_case

__all__ = ["POLICIES", "load", "modules"]

# what their data.py and utils.py import for other datasets
UNUSED = {
    "csl_data": "MyGNNBenchmarkDataset", "gnn_rni_data": "PlanarSATPairsDataset", "networkx": "Graph", "tqdm": "tqdm",
    "sklearn__model_selection": "StratifiedKFold",
}  # fmt: skip
POLICIES = {"marking": enfa.NodeMarking(), "node deletion": enfa.NodeDeletion(isolate=True)}
ATOMS, BONDS = [119, 5, 12, 12, 10, 6, 6, 2, 2], [5, 6, 2]


def modules(folder: Path) -> tuple[Any, Any, list[str]]:
    """Their data.py and models.py, and what is stood in for."""
    stood_in = stand_in(
        torch_scatter=SCATTER, torch_sparse={"coalesce": None}, ogb__graphproppred__mol_encoder=OGB,
        **{name: {value: object} for name, value in UNUSED.items()},
    )  # fmt: skip
    graphs = import_module("ogb.graphproppred")
    for name in ("PygGraphPropPredDataset", "Evaluator"):
        if not hasattr(graphs, name):
            setattr(graphs, name, object)
    sys.path.insert(0, str(folder))
    data, models = import_module("data"), import_module("models")
    inc = data.SubgraphData.__inc__

    def as_then(self: Any, key: str, value: Any, *more: Any) -> Any:
        if key == data.ORIG_EDGE_INDEX_KEY:
            return inc(self, key, value)
        return self.num_nodes if "index" in key else 0

    data.SubgraphData.__inc__ = as_then
    return data, models, stood_in


def transform_of(data: Any, policy: str) -> Any:
    if policy == "node deletion":
        return data.policy2transform("node_deleted", 2)

    class NodeMarked(data.Graph2Subgraph):  # type: ignore[misc, name-defined]
        """A copy for every node, in which a further first feature of it is 1."""

        def to_subgraphs(self, graph: Data) -> list[Data]:
            found = []
            for i in range(graph.num_nodes or 0):
                mark = graph.x.new_zeros(len(graph.x), 1)
                mark[i] = 1
                found.append(Data(
                    x=torch.hstack([mark, graph.x]), edge_index=graph.edge_index, edge_attr=graph.edge_attr,
                    subgraph_idx=torch.tensor(i), subgraph_node_idx=torch.arange(len(mark)), num_nodes=len(mark),
                ))  # fmt: skip
            return found

    return NodeMarked()


def ours_of(channels: Any, case: Case, out: int, head: list[int], marks: int, invariant: bool) -> enfa.ESAN:
    """Their DSnetwork, on a bag."""
    gin = case.conv == "gin"
    options: Any = {} if gin else {"edge_channels": BONDS, "readout": "mean"}
    return enfa.ESAN(
        channels, case.width, out, case.layers, case.conv, channels=head, invariant=invariant, jk=case.jk, mark_channels=marks,
        **options,
    )  # fmt: skip


def load(folder: Path, data: Path, count: int, cases: Sequence[str] = ()) -> Iterator[Peer]:
    their_data, models, stood_in = modules(folder)
    for policy in POLICIES:
        for case in CASES:
            if not cases or case.name in cases:
                yield _peer(their_data, models, case, policy, data, count, stood_in)


def _peer(their_data: Any, models: Any, case: Case, policy: str, data: Path, count: int, stood_in: list[str]) -> Peer:
    found, graphs, y, loss = of_case(data, case, count)
    gin, marks, head = case.conv == "gin", int(policy == "marking"), 32 if case.conv == "gin" else 64
    encoder, width = (lambda x: x), int(found.channels) if gin else case.width  # type: ignore[arg-type]
    if not gin:
        encoder = import_module("ogb.graphproppred.mol_encoder").AtomEncoder(case.width)
        if marks:
            encoder = models.EgoEncoder(encoder)
            encoder.num_added = marks  # type: ignore[attr-defined]
    inner = models.GNN(
        found.outputs, case.layers, width + marks, case.width, "originalgin" if gin else "gin", drop_ratio=0.0,
        JK=case.jk, graph_pooling="sum" if gin else "mean", feature_encoder=encoder,
    )  # fmt: skip
    if case.jk == "concat":
        inner.out_dim = case.width * case.layers + width + marks
    invariant = policy == "marking"
    channels = [head] if invariant else [head, head]
    theirs = models.DSnetwork(inner, channels, found.outputs, invariant=invariant)
    ours = ours_of(int(found.channels) if gin else ATOMS, case, found.outputs, channels, marks, invariant)  # type: ignore[arg-type]
    transform, pool = transform_of(their_data, policy), inner.pool

    def batch(some: Sequence[Data]) -> Any:
        made = [transform(Data(x=g.x, edge_index=g.edge_index, edge_attr=g.edge_attr, num_nodes=g.num_nodes)) for g in some]
        for one in made:
            one.num_nodes = len(one.x)
        return next(iter(DataLoader(made, batch_size=len(made), follow_batch=["subgraph_idx"])))

    @contextmanager
    def static(batch: Any) -> Iterator[None]:
        SIZE["known"] = int(batch.num_graphs)
        inner.pool = partial(pool, size=int(batch.num_subgraphs.sum()))
        try:
            yield
        finally:
            SIZE["known"], inner.pool = None, pool

    pairs = _pairs(theirs, ours, gin, marks)
    name = f"ESAN, {case.name}, {policy}"
    return Peer(name, theirs, ours, pairs, POLICIES[policy], batch, stood_in, graphs, y, loss, static)


def _pairs(theirs: Any, ours: Any, gin: bool, marks: int) -> Pairs:
    pairs, gnn = Pairs(), theirs.subgraph_gnn.gnn_node

    def marks_last(value: Tensor) -> Tensor:
        """Of weights [out, in]: marks stand first there, last here."""
        return torch.cat([value[:, marks:], value[:, :marks]], 1)

    def same(value: Tensor) -> Tensor:
        return value

    def tables(encoder: Any) -> list[Tensor]:
        found = next(list(part) for part in encoder.modules() if isinstance(part, nn.ModuleList))
        return [table.weight for table in found]

    if isinstance(gnn.atom_encoder, nn.Module):
        pairs.join(tables(gnn.atom_encoder), ours.encoder.embed.weight)  # type: ignore[arg-type]
    for i, (a, layer) in enumerate(zip(gnn.convs, ours.layers)):
        turned, b = same if i else marks_last, layer.conv
        inside = a.layer.nn if gin else a.mlp
        if not gin:
            pairs.add(a.eps, b.eps)
            pairs.join(tables(a.bond_encoder), b.edge.weight, lambda value, turned=turned: turned(value).T)  # type: ignore[misc]
        pairs.add(inside[0].weight, b.update[0].weight, turned)
        pairs.add(inside[0].bias, b.update[0].bias)
        for k in (1, 3):
            pairs.same(inside[k], b.update[k])
        pairs.same(gnn.batch_norms[i], layer.norm)
    # of all tables side by side, only the first has marks
    first = len(gnn.convs[0].layer.nn[0].weight[0]) if ours.jk == "concat" else 0

    def of_input(value: Tensor) -> Tensor:
        return torch.cat([marks_last(value[:, :first]), value[:, first:]], 1) if first else value

    of_theirs = {"own": theirs.fc_list, "bag": theirs.fc_sum_list}
    for name, layers in of_theirs.items():
        for k, (a, b) in enumerate(zip(layers, ours.subgraph_mlp[name])):
            pairs.add(a.weight, b.weight, of_input if k == 0 and a.weight.shape[1] == theirs.subgraph_gnn.out_dim else same)
            pairs.add(a.bias, b.bias)
    for k in (0, 2):
        pairs.same(theirs.final_layers[k], ours.head[k])
    return pairs
