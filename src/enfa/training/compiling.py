"""A config's dataset, compiled: in memory, in its cache, or in shards."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from enfa.batch.shards.dataset import Compiled
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import MANIFEST, Manifest
from enfa.draws import drawn_late
from enfa.edits import Policy
from enfa.nn.bag import ShardedDataset, trace
from enfa.nn.bag import compile as compile_dataset
from enfa.training.build import make_policy, training_draw
from enfa.training.settings.config import Config

__all__ = ["compile_for"]


def compile_for(
    config: Config, graphs: Sequence[Data], model: nn.Module, progress: bool = False, level: str = "graph", **sharing: Any
) -> Compiled:
    """The whole bags, also where epochs draw from them. Rows that read several subgraphs depend on the draw: planned batch by
    batch. ``sharing``: how to compile into ``config.shards``, as :func:`enfa.compile` takes it."""
    with drawn_late(config.seed):
        return _compiled(config, graphs, model, progress, level, sharing)


def _compiled(
    config: Config, graphs: Sequence[Data], model: nn.Module, progress: bool, level: str, sharing: dict[str, Any]
) -> Compiled:
    draw, policy, apart = training_draw(config), make_policy(config), True
    if draw is not None:
        policy = draw.policy
        steps = trace(model, graphs, policy).steps
        apart = not any(step.kind == "nodes" or step.along == "subgraphs" for step in steps)
        if not apart and config.model not in ("ds", "dss"):
            raise ValueError(
                f"Expected model=ds or model=dss with the policy subsample, which trains on parts of the bags and evaluates "
                f"whole ones, got {config.model}, whose rows read all subgraphs of a bag"
            )
    if config.shards is not None:
        return _in_shards(config, graphs, model, policy, progress, level, apart, sharing)
    labels = None
    if level == "node":  # which graphs cannot have as their own
        labels, graphs = torch.cat([graph.y for graph in graphs]), [copy(graph) for graph in graphs]
        for graph in graphs:
            del graph.y
    compiled = compile_dataset(
        graphs, policy, model, config.cache, progress, kind=config.plan, threads=config.threads, ahead=apart
    )
    compiled.node_y = labels
    return compiled


def _in_shards(
    config: Config, graphs: Sequence[Data], model: nn.Module, policy: Policy, progress: bool, level: str, apart: bool,
    sharing: dict[str, Any],
) -> ShardedDataset:  # fmt: skip
    """What is not in the folder so far is compiled into it; whatever is there for something else is refused."""
    if level == "node":
        raise ValueError(f"Expected labels of graphs with shards={config.shards!r}, got labels of nodes: use cache")
    if not apart:
        raise ValueError(
            f"Expected model=ds with the policy subsample and shards={config.shards!r}, got {config.model}, whose rows read "
            f"several subgraphs: use no shards"
        )
    assert config.shards is not None
    folder = Folder(config.shards)
    given = {name: value for name, value in sharing.items() if value is not None}
    if MANIFEST in folder.names() and not given.keys() & {"shards", "shard_size"}:  # shared out as it is there
        known = Manifest.read(folder)
        given |= {"shards": len(known.shards)} if known.size is None else {"shard_size": known.size}
    compile_dataset(graphs, policy, model, out=config.shards, progress=progress, kind=config.plan, **given)
    return ShardedDataset.open(config.shards, config.shard_memory)
