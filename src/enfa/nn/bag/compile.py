"""Compiling a dataset for any model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from enfa.batch.programs import CompiledProgram, compile_program
from enfa.edits import Policy
from enfa.graphs import check_graphs
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.make import program_of
from enfa.plan.gradients import refuse_gradients
from enfa.plan.steps.check import check_kind
from enfa.plan.steps.step import Program

__all__ = ["compile"]

_FLOATS = {torch.float32: np.float32, torch.float64: np.float64}


def compile(
    dataset: Sequence[Data],
    policy: Policy,
    model: nn.Module | Program,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    ahead: bool = True,
) -> CompiledProgram:
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
        ahead: False keeps graphs and edits and plans every batch anew, as the other kinds do: for models with a context,
            of which parts of the bags are drawn (``DataLoader(draw=...)``). Nothing is cached then.
    """
    check_kind(kind)
    if cache is not None:
        raise ValueError("Expected no cache for a model of one's own: only datasets for DSGNN and DSSGNN can be stored")
    refuse_gradients(dataset)
    floats = None
    if isinstance(model, nn.Module):
        floats = next((p.dtype for p in model.parameters() if p.is_floating_point()), torch.float32)
        if floats not in _FLOATS:
            raise ValueError(f"Expected a model in float32 or float64 to compile for, got {floats}: use torch.autocast")
    program = program_of(model, check_graphs(dataset), policy)
    options: dict[str, Any] = {"kind": kind if ahead else "full", "threads": threads}
    return compile_program(dataset, policy, program, Bag, progress, dtype=None if floats is None else _FLOATS[floats], **options)
