"""Adding graphs to a compiled dataset."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.batch.compile import compile_rows, in_precision
from enfa.batch.file.key import chained, fingerprint
from enfa.edits import Edits
from enfa.edits.check import edits_by
from enfa.edits.join import join_edits
from enfa.edits.marks import marks_beside, with_marks
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.attributes import added_attributes
from enfa.graphs.check import read_once
from enfa.graphs.join import join, renumbered
from enfa.graphs.labels import added_labels, unknown_labels
from enfa.plan.gradients import refuse_gradients
from enfa.plan.make import sources_of_steps
from enfa.plan.rows.distinct import StepRows
from enfa.plan.rows.merge import merge_steps
from enfa.plan.slicing.sources import Sources
from enfa.plan.step import Program

if TYPE_CHECKING:
    from enfa.batch.dataset import CompiledDataset

__all__ = ["extend"]


def _renumbered(
    new: GraphSet, x: np.ndarray, edge_attr: np.ndarray | None, categories: np.ndarray, program: Program
) -> GraphSet:
    """With kinds as compiled, new ones behind; attributes of edges that no step reads are not looked at."""
    if any(step.edges for step in program.steps):
        return renumbered(new, x, edge_attr, categories)
    new = renumbered(replace(new, edge_attr=None, edge_kind=np.zeros_like(new.edge_kind)), x, None, categories)
    return replace(new, edge_attr=edge_attr)


def _widen_kinds(rows: list[StepRows], program: Program, marks: int, more: int) -> None:
    """Number edge kinds (attribute row, mark) for ``more`` marks where there were ``marks``, as expand.edge_tables does."""
    for step, found in zip(program.steps, rows):
        if step.edges:
            found.keys.replace_b(found.keys.b // marks * more + found.keys.b % marks)


def _add_rows(compiled: CompiledDataset, new: GraphSet, edits: Edits) -> None:
    """The rows of the new graphs; nothing is changed before they are found."""
    assert compiled.rows is not None and compiled.sources is not None
    old, program, first = compiled.sources.arrays, compiled.program, len(compiled)
    new = _renumbered(new, old["x"], old["edge_attr"], old["categories"], program)
    if old["root"] is not None and edits.root is None:  # a policy that found nothing to edit
        edits = replace(edits, root=np.full((edits.num_subgraphs, old["root"].shape[1]), -1))
    more, kind = sources_of_steps(new, edits, program)
    added = dict(more.arrays)
    if program.share == "graph":  # no kind of one graph is one of another
        kind = kind + len(old["start_feature"])
        added["start_feature"] = np.concatenate([old["start_feature"], added["start_feature"]])
        added["start_graph"] = np.concatenate([old["start_graph"], added["start_graph"] + first])
    for name in ("node_ptr", "sub_ptr"):
        added[name] = np.concatenate([old[name], added[name][1:] + old[name][-1]])
    if old["root"] is not None and old["root"].shape[1] != added["root"].shape[1]:
        raise ValueError(f"Expected {old['root'].shape[1]} root(s) a subgraph, as compiled, got {added['root'].shape[1]}")
    for name in ("sub_size", "root"):
        added[name] = None if old[name] is None else np.concatenate([old[name], added[name]])
    found = compile_rows(new, edits, program, kind)
    rows = deepcopy(compiled.rows) if compiled.shared else compiled.rows
    if len(edits.edge_marks) > len(old["edge_marks"]):
        _widen_kinds(rows, program, len(old["edge_marks"]), len(edits.edge_marks))
    merge_steps(rows, found, program)
    compiled.rows, compiled.sources, compiled.shared = rows, Sources(program, **added), False


def extend(compiled: CompiledDataset, graphs: Sequence[Data]) -> np.ndarray:
    """See :meth:`enfa.batch.dataset.CompiledDataset.extend`."""
    if compiled.policy is None:
        raise ValueError("Expected to know the policy: load with load_compiled(path, policy=...) to extend")
    first, graphs = len(compiled), read_once(graphs)
    new = replace(check_graphs(graphs), first=first)
    refuse_gradients(graphs)
    edits = edits_by(compiled.policy, new)
    y, attr = added_labels(compiled.y, first, graphs), added_attributes(compiled.graph_attr, graphs)
    node_y = compiled.node_y
    if node_y is not None:
        node_y = torch.cat([node_y, unknown_labels(node_y, new.num_nodes)])
    added = fingerprint(new, edits, None if y is None else y[first:], {name: value[first:] for name, value in attr.items()})
    if compiled.key["dtype"] is not None:
        new, edits = in_precision(new, edits, compiled.key["dtype"])
    elif compiled.marks.dtype == np.float32:
        edits = marks_beside(edits, new.x)
    if compiled.sources is not None:
        known = compiled.sources.arrays
        _add_rows(compiled, new, with_marks(edits, known["marks"], known["edge_marks"]))
    if compiled.graphs is not None:
        old, made = compiled.graphs
        both = join_edits(made, old, with_marks(edits, made.marks, made.edge_marks))
        compiled.graphs = join(old, _renumbered(new, old.x, old.edge_attr, old.categories, compiled.program)), both
    compiled.y, compiled.graph_attr, compiled.key = y, attr, chained(compiled.key, added)
    compiled.node_y = node_y
    return np.arange(first, first + new.num_graphs)
