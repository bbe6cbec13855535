"""Compiling a dataset: the distinct rows of all its graphs, found once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.batch.key import key_of
from enfa.batch.rows import compile_graphs
from enfa.batch.storage import load_compiled
from enfa.edits import Policy
from enfa.graphs import check_graphs
from enfa.graphs.labels import labels
from enfa.plan.gradients import refuse_gradients
from enfa.plan.make import check_kind, check_spec, edits_of, sources_of
from enfa.plan.spec import Spec

__all__ = ["compile"]

def compile(
    dataset: Sequence[Data],
    policy: Policy,
    spec: Spec,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    ahead: bool = True,
) -> CompiledDataset:
    """Compile a PyG dataset, or a list of graphs, for one policy and one spec.

    Args:
        cache: a folder, in which a file named after graphs, policy and spec is looked up or written; or a file.
            A file that was made for something else is refused with an error that says what differs.
        progress: a progress bar with the affected rows looked up per second.
        kind: as in :func:`enfa.make_plan`. Only ``"distinct"`` shares rows; the others plan every batch anew.
        threads: as many as there are cores, and at most 8, by default.
        ahead: False keeps graphs and edits and plans every batch anew, as the other kinds do: for models with a context,
            of which parts of the bags are drawn (``DataLoader(draw=...)``). Nothing is cached then.

    Memory: the compiled tables (``compiled.cost().bytes``), their hash tables (as much again), and for each
    thread the affected rows of about 3 million (subgraph, node) pairs, 24 bytes each.
    """
    check_kind(kind)
    check_spec(spec)
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"Expected threads to be an integer >= 1, or None for as many as there are cores, got {threads!r}")
    graphs = check_graphs(dataset)
    refuse_gradients(dataset)
    y = labels(dataset)
    edits = edits_of(graphs, policy, spec)
    key = key_of(graphs, edits, y, policy, spec, kind)
    path = None
    if cache is not None and ahead:
        path = Path(cache)
        if path.is_dir() or not path.suffix:
            name = type(policy).__name__, str(spec.num_layers), key["fingerprint"][:12], key["digest"][:8]
            path = path / f"{'-'.join(name)}.enfa"
        if path.exists():
            return load_compiled(path, expect=key, policy=policy)
    if not spec.edge_attr:
        graphs = replace(graphs, edge_attr=None, edge_kind=np.zeros_like(graphs.edge_kind))
    sources, start = sources_of(graphs, edits, spec)
    rows = None
    if kind == "distinct" and ahead:
        rows = compile_graphs(graphs, edits, spec, start, progress, threads)
    compiled = CompiledDataset(key, policy, spec, kind, sources, rows, None if rows else (graphs, edits), y)
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        compiled.save(path)
    return compiled
