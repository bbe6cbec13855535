"""Compiling a dataset for any model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from enfa import batch
from enfa.batch.compile import compile_program
from enfa.batch.dataset import CompiledDataset
from enfa.batch.file import storage
from enfa.batch.shards.agreed import Agreed
from enfa.batch.shards.manifest import Manifest
from enfa.batch.shards.stream import Block, Flat
from enfa.batch.shards.write import write_shards
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.edits.own import warn_of_own
from enfa.graphs import check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.check import read_once
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.make import program_of
from enfa.plan.check import check_kind
from enfa.plan.gradients import refuse_gradients
from enfa.plan.step import Program

__all__ = ["ShardedDataset", "compile", "load_compiled"]

_FLOATS = {torch.float32: np.float32, torch.float64: np.float64}


@overload
def compile(
    dataset: Sequence[Data],
    policy: Policy,
    model: nn.Module | Program,
    cache: str | Path | None = ...,
    progress: bool = ...,
    *,
    kind: str = ...,
    threads: int | None = ...,
    ahead: bool = ...,
    unshared: int | str | None = ...,
) -> CompiledDataset: ...


@overload
def compile(
    dataset: Iterable[Data] | Flat,
    policy: Policy,
    model: nn.Module | Program,
    *,
    progress: bool = ...,
    kind: str = ...,
    unshared: int | str | None = ...,
    out: str | Path,
    shards: int | None = ...,
    shard_size: int | None = ...,
    engine: Any = ...,
    workers: int | None = ...,
) -> Manifest: ...


def compile(
    dataset: Any,
    policy: Policy,
    model: nn.Module | Program,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    ahead: bool = True,
    unshared: int | str | None = "auto",
    out: str | Path | None = None,
    shards: int | None = None,
    shard_size: int | None = None,
    engine: Any = None,
    workers: int | None = None,
) -> CompiledDataset | Manifest:
    """Compile a PyG dataset, or a list of graphs, for one policy and one model: the distinct rows of all graphs, found once.

    Slices of what is returned are plans; :class:`enfa.DataLoader` makes batches of it.

    Args:
        model: as in :func:`enfa.make_plan`: any module that computes with a bag, or its program. Float features are in the
            precision of the model's parameters.
        cache: a folder, in which a file named after graphs, policy and steps is looked up or written; or a file.
            A file that was made for something else is refused with an error that says what differs.
        progress: a progress bar with the affected rows looked up per second.
        kind: as in :func:`enfa.make_plan`. Only ``"distinct"`` shares rows; the others plan every batch anew.
        threads: as many as there are cores, and at most 8, by default.
        ahead: False keeps graphs and edits and plans every batch anew, as the other kinds do: for models whose rows read
            several subgraphs, of which parts of the bags are drawn (``DataLoader(draw=...)``). Nothing is cached then.
        unshared: the step from which on every pair has a row of its own. ``"auto"``: where a sample of the graphs shows that
            nearly none are shared any more, as in the later layers of SUN or SSWL+ on molecules; batches are then smaller and
            faster, with at most a seventh more rows. None: rows are shared in all steps.
        out: a folder, or a URL such as ``s3://bucket/data``, for datasets that do not fit into memory. The graphs, any iterable
            of them, are read as a stream and compiled shard by shard, each into a file of that folder, with a manifest; done
            again, it goes on where it ended. Rows are shared within a shard. See docs/scale.md.
        shards, shard_size: into so many shards, or shards of so many graphs (5,000 by default).
        engine: what compiles the shards. None or ``"local"``: processes of this machine; ``"dask"``, the address of a Dask
            scheduler, or a ``distributed.Client``: the workers of a cluster.
        workers: how many processes; as many as there are cores, by default. With one, this process does it.
    """
    check_kind(kind)
    dtype = None
    if isinstance(model, nn.Module):
        floats = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
        if floats not in _FLOATS:
            raise ValueError(f"Expected a model in float32 or float64 to compile for, got {floats}: use torch.autocast")
        dtype = _FLOATS[floats]
    if out is not None:
        if cache is not None or threads is not None or not ahead:
            raise ValueError(
                "Expected no cache, threads or ahead=False where a dataset is compiled into shards: use out, workers"
            )
        name = None if dtype is None else np.dtype(dtype).name

        def agree(first: Block) -> Agreed:
            program = program_of(model, first.graphs, policy, first.attr)
            return Agreed.on(first, policy, program, kind, name, unshared)

        how: dict[str, Any] = {"shards": shards, "shard_size": shard_size, "engine": engine, "workers": workers}
        return write_shards(dataset, out, agree, progress=progress, **how)
    for given, value in {"shards": shards, "shard_size": shard_size, "engine": engine, "workers": workers}.items():
        if value is not None:
            raise ValueError(f"Expected out, the folder of the shards, with {given}={value!r}, got none")
    dataset = read_once(dataset)
    graphs = check_graphs(dataset)
    refuse_gradients(dataset)  # tracing would run into them
    checked = graphs, edits_by(policy, graphs), graph_attributes(dataset)
    program = program_of(model, graphs, policy, checked[2], checked[1])
    warn_of_own(policy, graphs, checked[1])
    options: dict[str, Any] = {"kind": kind, "threads": threads, "ahead": ahead, "dtype": dtype, "checked": checked}
    options["unshared"] = unshared
    return compile_program(dataset, policy, program, Bag, cache, progress, **options)


def load_compiled(path: str | Path, *, expect: dict[str, Any] | None = None, policy: Policy | None = None) -> CompiledDataset:
    """Read what ``compiled.save(path)`` wrote.

    Raises :class:`enfa.batch.CorruptFileError` for a damaged file and a ValueError that says what differs for one of another
    format, or of other graphs, policy or steps than ``expect``. A policy of one's own must be given to ``extend`` later.
    """
    return storage.load_compiled(path, expect=expect, policy=policy, cls=Bag)


class ShardedDataset(batch.ShardedDataset):
    __doc__ = batch.ShardedDataset.__doc__
    plan_class = Bag
