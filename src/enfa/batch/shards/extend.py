"""Adding graphs to a sharded dataset: one more shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from torch_geometric.data import Data

from enfa.batch.shards.agreed import Agreed
from enfa.batch.shards.manifest import Manifest, shard_name
from enfa.batch.shards.stream import Block, blocks
from enfa.batch.shards.write import compile_shard

if TYPE_CHECKING:
    from enfa.batch.shards.dataset import ShardedDataset

__all__ = ["with_shard"]


def _agreed(sharded: ShardedDataset) -> Agreed:
    """What was decided on the first shard, from what has been written."""
    manifest, first = sharded.manifest, sharded.shards.get(0)
    if sharded.policy is None:
        raise ValueError("Expected to know the policy: open with ShardedDataset.open(folder, policy=...) to extend")
    root = first.graphs[1].root if first.graphs is not None else first.sources.root if first.sources is not None else None
    return Agreed(
        sharded.policy, manifest.program, sharded.kind, manifest.key["dtype"], manifest.key, manifest.columns,
        manifest.labels, manifest.attributes, None if root is None else root.shape[1],
    )  # fmt: skip


def with_shard(sharded: ShardedDataset, graphs: Sequence[Data]) -> Manifest:
    """Compile some graphs into the next shard, and write the manifest that has it."""
    manifest, folder, agreed = sharded.manifest, sharded.folder, _agreed(sharded)
    block = next(blocks(graphs, [len(graphs)]), None)
    if not isinstance(block, Block):
        raise ValueError("Expected at least one graph to add, got none")
    block = agreed.checked(replace(block, graphs=replace(block.graphs, first=len(sharded))))
    added = compile_shard(agreed, folder, len(manifest.shards), block, None)
    assert added.file == shard_name(len(manifest.shards))
    more = replace(manifest, size=None, shards=[*manifest.shards, added])
    more.write(folder)
    return more
