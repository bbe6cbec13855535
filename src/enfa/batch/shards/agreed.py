"""What all shards of a dataset have in common: decided on the first, and asked of the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.batch.compile import keyed
from enfa.batch.shards.manifest import Manifest, Shard
from enfa.batch.shards.stream import Block
from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.edits.own import warn_of_own
from enfa.plan.check import check_program
from enfa.plan.rows.ending import check_unshared, end_of_sharing
from enfa.plan.step import Program

__all__ = ["Agreed"]


def _form(array: Any) -> list[Any]:
    """The type and the shape of one row."""
    return [str(array.dtype).removeprefix("torch."), list(array.shape[1:])]


def _columns(block: Block) -> dict[str, list[Any]]:
    graphs = block.graphs
    found = {"x": _form(graphs.x)}  # with the columns of x_cat behind
    if len(graphs.categories):
        found["x_cat"] = ["int64", [len(graphs.categories)]]
    return found if graphs.edge_attr is None else found | {"edge_attr": _form(graphs.edge_attr)}


def _said(form: list[Any] | None) -> str:
    return "none" if form is None else f"{form[0]} of shape {form[1]}"


@dataclass(frozen=True)
class Agreed:
    """All that a process must know to compile a shard, beside its graphs."""

    policy: Policy
    program: Program
    kind: str
    dtype: str | None  # of the model
    key: dict[str, Any]  # without fingerprint and digest
    columns: dict[str, list[Any]]
    labels: list[Any] | None
    attributes: dict[str, list[Any]]
    roots: int | None  # of every subgraph

    @classmethod
    def on(
        cls, first: Block, policy: Policy, program: Program, kind: str, dtype: str | None, unshared: int | str | None
    ) -> Agreed:
        """Decided on the first shard; ``unshared`` as in :func:`enfa.compile`, where "auto" looks at a sample of its graphs."""
        edits = edits_by(policy, first.graphs)
        check_program(program, first.graphs, edits, repr(policy))
        warn_of_own(policy, first.graphs, edits)
        if kind == "distinct":
            apart = end_of_sharing(first.graphs, edits, program) if unshared == "auto" else unshared
            program = check_unshared(replace(program, unshared=apart))  # type: ignore[arg-type]
        key = keyed(first.graphs, edits, first.y, first.attr, policy, program, kind, dtype)[0]
        labels = None if first.y is None else _form(first.y)
        rest = {name: value for name, value in key.items() if name not in ("fingerprint", "digest")}
        attributes = {name: _form(value) for name, value in first.attr.items()}
        roots = None if edits.root is None else edits.root.shape[1]
        return cls(policy, program, kind, dtype, rest, _columns(first), labels, attributes, roots)

    def manifest(self, size: int | None, shards: list[Shard]) -> Manifest:
        needs = [list(need) for need in sorted(self.program.needs)]
        return Manifest(self.key, needs, self.columns, self.labels, self.attributes, size, shards)

    def checked(self, block: Block) -> Block:
        """The same with labels and attributes of the types agreed on, where these hold them; else refused."""
        found, where = _columns(block), block.where
        for name in sorted(found.keys() | self.columns.keys()):
            if found.get(name) != self.columns.get(name):
                raise ValueError(
                    f"{where}: Expected '{name}' of {_said(self.columns.get(name))}, as in the first shard, got "
                    f"{_said(found.get(name))}"
                )
        y = None if block.y is None else _form(block.y)
        if (y is None) != (self.labels is None):
            raise ValueError(f"{where}: Expected 'y' of {_said(self.labels)}, as in the first shard, got {_said(y)}")
        attr = {name: _as(block.attr.get(name), form, name, where) for name, form in self.attributes.items()}
        return replace(block, y=None if self.labels is None else _as(block.y, self.labels, "y", where), attr=attr)

    def rooted(self, edits: Edits) -> Edits:
        """With a place for roots, also where a policy found nothing to edit in a whole shard."""
        if self.roots is None or edits.root is not None:
            return edits
        return replace(edits, root=np.full((edits.num_subgraphs, self.roots), -1))


def _as(value: Tensor | None, form: list[Any], name: str, where: str) -> Tensor:
    dtype, got = getattr(torch, form[0]), None if value is None else _form(value)
    fits = value is not None and list(value.shape[1:]) == form[1] and torch.can_cast(value.dtype, dtype)
    if fits and value is not None:
        found = value.to(dtype)
        if value.dtype == dtype or torch.equal(found.to(value.dtype), value):
            return found
    raise ValueError(f"{where}: Expected '{name}' of {_said(form)}, as in the first shard, got {_said(got)}")
