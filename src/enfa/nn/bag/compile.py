"""Compiling a dataset for any model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch_geometric.data import Data

from enfa.batch.compile import compile as compile_for_spec
from enfa.batch.dataset import CompiledDataset
from enfa.batch.programs import CompiledProgram, compile_program
from enfa.edits import Policy
from enfa.graphs import check_graphs
from enfa.nn.bag.bag import Bag
from enfa.nn.bag.trace import trace
from enfa.plan.gradients import refuse_gradients
from enfa.plan.make import check_kind
from enfa.plan.spec import Spec
from enfa.plan.steps.step import Program

__all__ = ["compile"]

_FLOATS = {torch.float32: np.float32, torch.float64: np.float64}


def compile(
    dataset: Sequence[Data],
    policy: Policy,
    spec: nn.Module | Spec | Program,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    ahead: bool = True,
) -> CompiledDataset | CompiledProgram:
    """Compile a PyG dataset, or a list of graphs, for one policy and one model: the distinct rows of all graphs, found once.

    Slices of what is returned are plans; :class:`enfa.DataLoader` makes batches of it.

    Args:
        spec: the model, as in :func:`enfa.make_plan`: any module that computes with a bag, DSGNN or DSSGNN, or what is known of
            one, its spec or program. Float features are in the precision of the model's parameters.
        cache: a folder, in which a file named after graphs, policy and spec is looked up or written; or a file.
            A file that was made for something else is refused with an error that says what differs. Only for DSGNN and DSSGNN.
        progress: a progress bar with the affected rows looked up per second.
        kind: as in :func:`enfa.make_plan`. Only ``"distinct"`` shares rows; the others plan every batch anew.
        threads: as many as there are cores, and at most 8, by default.
        ahead: False keeps graphs and edits and plans every batch anew, as the other kinds do: for models with a context,
            of which parts of the bags are drawn (``DataLoader(draw=...)``). Nothing is cached then.
    """
    known = spec if isinstance(spec, Spec) else getattr(spec, "spec", None)
    if isinstance(known, Spec) or not isinstance(spec, (nn.Module, Program)):
        return compile_for_spec(
            dataset, policy, known if isinstance(known, Spec) else spec, cache, progress,  # type: ignore[arg-type]
            kind=kind, threads=threads, ahead=ahead,
        )  # fmt: skip
    check_kind(kind)
    if cache is not None:
        raise ValueError("Expected no cache for a model of one's own: only datasets for DSGNN and DSSGNN can be stored")
    refuse_gradients(dataset)
    program, dtype = spec, None
    if isinstance(spec, nn.Module):
        floats = next((p.dtype for p in spec.parameters() if p.is_floating_point()), torch.float32)
        if floats not in _FLOATS:
            raise ValueError(f"Expected a model in float32 or float64 to compile for, got {floats}: use torch.autocast")
        program, dtype = trace(spec, check_graphs(dataset), policy), _FLOATS[floats]
    assert isinstance(program, Program)
    options: dict[str, Any] = {"kind": kind if ahead else "full", "threads": threads, "dtype": dtype}
    return compile_program(dataset, policy, program, Bag, progress, **options)
