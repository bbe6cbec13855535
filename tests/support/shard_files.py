"""Sharded datasets of a few graphs, cut where a test wants."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.batch.file.storage import file_parts
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import Manifest, Shard, shard_name

__all__ = ["write_shards"]


def write_shards(
    path: Path, graphs: Sequence[Data], policy: enfa.Policy, model: nn.Module | enfa.Program, sizes: Sequence[int],
    **options: Any,
) -> None:  # fmt: skip
    """Shards of the given sizes; ``options`` as of ``enfa.compile``."""
    folder, found, begin = Folder(path), [], 0
    assert sum(sizes) == len(graphs)
    options = {"unshared": None, **options}
    for number, size in enumerate(sizes):
        compiled = enfa.compile(graphs[begin : begin + size], policy, model, progress=False, **options)
        begin += size
        data = b"".join(file_parts(compiled))
        folder.write(shard_name(number), [data])
        found.append(
            Shard(
                shard_name(number), size, len(data), hashlib.sha256(data).hexdigest(), compiled.key["fingerprint"],
                int(compiled.node_ptr[-1]), compiled.num_subgraphs, compiled.num_pairs,
                [len(rows.keys) for rows in compiled.rows or ()],
            )
        )  # fmt: skip
    key = {name: value for name, value in compiled.key.items() if name not in ("fingerprint", "digest")}
    labels = None if compiled.y is None else _form(compiled.y)
    attributes = {name: _form(value) for name, value in compiled.graph_attr.items()}
    needs = sorted([list(need) for need in compiled.program.needs])
    columns = {"x": _form(graphs[0].x)} | ({} if graphs[0].edge_attr is None else {"edge_attr": _form(graphs[0].edge_attr)})
    Manifest(key, needs, columns, labels, attributes, None, found).write(folder)


def _form(value: Tensor) -> list[Any]:
    return [str(value.dtype).removeprefix("torch."), list(value.shape[1:])]
