"""A DS-GNN on the operators of PygHO (github.com/GraphPKU/PygHO), on the graphs and in the sizes of benchmarks/gpu.py.

PygHO is a library of operators, and has no DS-GNN: the one here is ours (``enfa.DSGNN``) with its rows in their SparseTensor,
all pairs of each graph as tuples, messages by their ``OpMessagePassingOnSubg2D`` (for GINE with a message function), sums
over nodes by their ``OpPoolingSubg2D``, tuples and indices precomputed by their ``sp_datapreprocess``. For torch.compile and
CUDA graphs their ``torch_scatter_reduce`` makes its zeros by ``new_zeros``: an index given as a list is copied to the GPU,
which cannot be captured.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data

import enfa
from gpu_parts.cases import CASES, Case, model_for
from peer_parts.missing import stand_in
from peer_parts.peer import Pairs, Peer, of_case

__all__ = ["load"]

UTILS: list[Any] = []  # their module of scatters


def load(folder: Path, data: Path, count: int, cases: Sequence[str] = ()) -> Iterator[Peer]:
    stood_in = stand_in(pqdm__processes={"pqdm": None}, tqdm={"tqdm": None})  # for preprocessing in parallel
    sys.path.insert(0, str(folder))
    UTILS[:] = [import_module("pygho.backend.utils")]
    for case in CASES:
        if not cases or case.name in cases:
            yield _peer(case, data, count, stood_in)


class Theirs(nn.Module):
    """A DSGNN's layers, on a SparseTensor."""

    def __init__(self, ours: Any, case: Case) -> None:
        super().__init__()
        ops = import_module("pygho.honn.TensorOp")
        gine, w = case.conv == "gine", case.width
        self.jk = case.jk
        self.atoms, self.bonds = (_embeddings(part) for part in (ours.encoder, ours.edge_encoder))
        message = (lambda x, e, target, index: (x + e).relu()) if gine else None
        self.passes = nn.ModuleList(ops.OpMessagePassingOnSubg2D("SS", "sum", "X", "A", message) for _ in range(case.layers))
        widths = [ours.encoder.out_channels, *[w] * (case.layers - 1)]
        self.edges = nn.ModuleList(nn.Linear(w, width) for width in widths) if gine else None
        self.mlps = nn.ModuleList(
            nn.Sequential(nn.Linear(n, w), nn.BatchNorm1d(w), nn.ReLU(), nn.Linear(w, w), nn.BatchNorm1d(w), nn.ReLU())
            for n in widths
        )
        self.pool = ops.OpPoolingSubg2D("S", "sum")
        pooled, out = w * (case.layers if case.jk == "concat" else 1), ours.head[3].out_features
        self.of_subgraph = nn.Sequential(nn.Linear(pooled, w), nn.ReLU())
        self.head = nn.Sequential(nn.Linear(w, w), nn.ReLU(), nn.Linear(w, out))

    def forward(self, batch: Any) -> Tensor:
        adjacency, tuples = batch.A, batch.X
        x = (
            batch.x.to(self.head[0].weight.dtype)
            if self.atoms is None
            else sum(table(batch.x[:, i]) for i, table in enumerate(self.atoms))
        )
        bonds = None
        if self.bonds is not None:
            bonds = adjacency.tuplewiseapply(lambda kinds: sum(table(kinds[:, i]) for i, table in enumerate(self.bonds)))  # type: ignore[arg-type]
        # tuple (root, node): the node's features and whether it is the root
        h = tuples.tuplewiseapply(lambda mark: torch.cat([x[tuples.indices[1]], mark.to(x.dtype)], 1))  # type: ignore[union-attr, index]
        found, more = [], batch.to_dict()
        for i, (messages, mlp) in enumerate(zip(self.passes, self.mlps)):
            edges = adjacency if self.edges is None else bonds.tuplewiseapply(self.edges[i])  # type: ignore[union-attr]
            h = h.add(messages(edges, h, more, h), True).tuplewiseapply(mlp)
            found.append(h)
        if self.jk == "concat":
            h = found[0].catvalue(found[1:], True)
        of_subgraph = self.of_subgraph(self.pool(h))
        return self.head(UTILS[0].torch_scatter_reduce(0, of_subgraph, batch.batch, batch.num_graphs, "mean"))


def _embeddings(encoder: Any) -> nn.ModuleList | None:
    sizes = getattr(getattr(encoder, "embed", None), "cardinalities", None)
    return sizes and nn.ModuleList(nn.Embedding(size, encoder.embed.weight.shape[1]) for size in sizes)


def _every_pair(data: Data) -> Any:
    n = int(data.num_nodes or 0)
    pairs = torch.cartesian_prod(torch.arange(n), torch.arange(n)).view(-1, 2).T.contiguous()
    mark = (pairs[0] == pairs[1]).float()[:, None]
    return import_module("pygho").SparseTensor(pairs, mark, shape=[n, n, 1], is_coalesced=True)


def _peer(case: Case, data: Path, count: int, stood_in: list[str]) -> Peer:
    found, graphs, y, loss = of_case(data, case, count)
    ours: Any = model_for(case, found)
    theirs = Theirs(ours, case)
    sparse, keys = import_module("pygho.hodata.SpData"), import_module("pygho.honn.SpOperator").parse_precomputekey(theirs)

    def batch(some: Sequence[Data]) -> Any:
        made = [sparse.sp_datapreprocess(g.clone(), [_every_pair], [""], keys) for g in some]
        return _Batch(Batch.from_data_list(made), sparse)

    name = f"PygHO, {case.name}, marking"
    return Peer(name, theirs, ours, _pairs(theirs, ours), enfa.NodeMarking(), batch, stood_in, graphs, y, loss, _static)


def _reduced(dim: int, src: Tensor, ind: Tensor, dim_size: int, aggr: str) -> Tensor:
    zeros = src.new_zeros(dim_size, *src.shape[1:])
    index = ind.view(-1, *[1] * (src.ndim - 1)).expand_as(src)
    return zeros.scatter_reduce_(dim, index, src, aggr, include_self=False)


@contextmanager
def _static(batch: Any) -> Iterator[None]:
    """Their scatters, with zeros made otherwise."""
    places = [m for name, m in sys.modules.items() if name.startswith("pygho.") and hasattr(m, "torch_scatter_reduce")]
    before = import_module("pygho.backend.utils").torch_scatter_reduce
    for module in places:
        module.torch_scatter_reduce = _reduced  # type: ignore[attr-defined]
    try:
        yield
    finally:
        for module in places:
            module.torch_scatter_reduce = before  # type: ignore[attr-defined]


class _Batch:
    """Their batch, with SparseTensors made on the device that it is moved to: their own ``to`` wants values."""

    def __init__(self, batch: Any, sparse: Any) -> None:
        self.batch, self.sparse = batch, sparse

    def to(self, device: str) -> Any:
        return self.sparse.batch2sparse(copy.copy(self.batch).to(device))


def _pairs(theirs: Theirs, ours: Any) -> Pairs:
    pairs = Pairs()
    for tables, encoder in ((theirs.atoms, ours.encoder), (theirs.bonds, ours.edge_encoder)):
        if tables is not None:
            pairs.join([table.weight for table in tables], encoder.embed.weight)  # type: ignore[misc]
    for i, layer in enumerate(ours.layers):
        mlp: Any = theirs.mlps[i]
        for k in (0, 1, 3):
            pairs.same(mlp[k], layer.conv.update[k])
        pairs.same(mlp[4], layer.norm)
        if theirs.edges is not None:
            pairs.same(theirs.edges[i], layer.conv.edge)
    pairs.same(theirs.of_subgraph[0], ours.subgraph_mlp[0])
    pairs.same(theirs.head[0], ours.head[0])
    pairs.same(theirs.head[2], ours.head[3])
    return pairs
