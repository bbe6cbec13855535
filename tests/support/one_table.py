"""Rows with copies and identities of one's own, on a bag that has one table and nothing else."""

from __future__ import annotations

import torch
from torch import Tensor

from enfa.nn.bag import Bag, Rows
from enfa.plan.step import Program, Step
from enfa.plan.table import Table

__all__ = ["counted_rows"]


def counted_rows(x: Tensor, copies: Tensor | None = None, identity: Tensor | None = None, kind: str = "distinct") -> Rows:
    """Each row counts once, and is itself, where nothing is said."""
    count = len(x)
    copies = torch.ones(count, dtype=torch.int64, device=x.device) if copies is None else copies
    none = torch.zeros(count, dtype=torch.int64, device=x.device)
    assert len(copies) == count
    table = Table(copies, int(copies.sum()))
    cache = torch.arange(count, device=x.device) if identity is None else identity
    bag = Bag(
        kind, Program((Step("start", "pairs"),), dropout=True), num_graphs=1, x_rows=x.new_zeros(1, 1), feature=none,
        mark_rows=x.new_zeros(1, 0), marked=none, of_graph=None, edge_rows=None, edge_mark_rows=x.new_zeros(0, 0),
        tables=[table], num_nodes=count, num_subgraphs=1,
    )  # fmt: skip
    bag.cache["identity 0"] = cache
    return Rows(x, bag, 0)
