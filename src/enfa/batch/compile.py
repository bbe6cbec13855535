"""Compiling a dataset: the distinct rows of all its graphs, found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.batch.rows import compile_graphs
from enfa.batch.storage import load_compiled
from enfa.edits import Policy
from enfa.graphs import check_graphs
from enfa.plan.make import check_kind, edits_of, sources_of
from enfa.plan.spec import Spec

__all__ = ["compile", "labels"]

def labels(graphs: Sequence[Data]) -> Tensor | None:
    """``y`` of all graphs, stacked: [G, …]; None where there is none."""
    ys = [getattr(data, "y", None) for data in graphs]
    if any(y is None for y in ys):
        return None
    tensors = [torch.as_tensor(y) for y in ys]
    flat = [y.reshape(1, -1) if y.ndim != 2 or y.shape[0] != 1 else y for y in tensors]
    for position, y in enumerate(flat):
        if y.shape != flat[0].shape:
            raise ValueError(f"graph {position}: Expected 'y' of shape {list(flat[0].shape)}, got {list(y.shape)}")
    stacked = torch.cat(flat)
    return stacked[:, 0] if all(y.numel() == 1 and y.ndim < 2 for y in tensors) else stacked


def compile(
    dataset: Sequence[Data],
    policy: Policy,
    spec: Spec,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
) -> CompiledDataset:
    """Compile a PyG dataset, or a list of graphs, for one policy and one spec.

    Args:
        cache: a folder, in which a file named after graphs, policy and spec is looked up or written; or a file. A file
            that was made for something else is refused with an error that says what differs.
        progress: a progress bar with the affected rows looked up per second.
        kind: as in :func:`enfa.make_plan`. Only ``"distinct"`` shares rows; the others build their plans per batch.
        threads: as many as there are cores, and at most 8, by default.

    Memory: the compiled tables (``compiled.cost().bytes``), their hash tables (as much again), and for each thread the
    affected rows of about 3 million (subgraph, node) pairs, 24 bytes each.
    """
    check_kind(kind)
    graphs = check_graphs(dataset)
    y = labels(dataset)
    key = CompiledDataset.key_of(graphs, y, policy, spec, kind)
    path = None
    if cache is not None:
        path = Path(cache)
        if path.is_dir() or not path.suffix:
            path /= f"{type(policy).__name__}-{spec.num_layers}-{key['fingerprint'][:12]}-{key['digest'][:8]}.enfa"
        if path.exists():
            return load_compiled(path, expect=key, policy=policy)
    edits = edits_of(graphs, policy, spec)
    if not spec.edge_attr:
        graphs = replace(graphs, edge_attr=None, edge_kind=np.zeros_like(graphs.edge_kind))
    sources, start = sources_of(graphs, edits, spec)
    rows = compile_graphs(graphs, edits, spec, start, progress, threads) if kind == "distinct" else None
    compiled = CompiledDataset(key, policy, spec, kind, sources, rows, None if rows else (graphs, edits), y)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        compiled.save(path)
    return compiled
