"""Compiling a dataset: the distinct rows of all its graphs, found once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.atomic import check_writable
from enfa.batch.chunks import in_chunks
from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.key import AUTO, fingerprint, key_of, wanting
from enfa.batch.file.storage import load_compiled
from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.edits.marks import marks_beside
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.check import read_once
from enfa.graphs.labels import labels
from enfa.plan.check import check_program
from enfa.plan.gradients import refuse_gradients
from enfa.plan.make import sources_of_steps
from enfa.plan.rows.arrange import arrange_steps
from enfa.plan.rows.distinct import StepRows
from enfa.plan.rows.ending import check_unshared, end_of_sharing
from enfa.plan.rows.merge import merge_steps
from enfa.plan.step import Program
from enfa.plan.table import Plan

__all__ = ["compile_checked", "compile_program", "compile_rows", "in_precision", "keyed"]


def in_precision(graphs: GraphSet, edits: Edits, dtype: Any) -> tuple[GraphSet, Edits]:
    """With features and marks in the floating-point type of a model."""

    def floats(array: np.ndarray | None) -> Any:
        return array if array is None or array.dtype.kind != "f" else array.astype(dtype, copy=False)

    return (
        replace(graphs, x=floats(graphs.x), edge_attr=floats(graphs.edge_attr)),
        replace(edits, marks=floats(edits.marks), edge_marks=floats(edits.edge_marks)),
    )


def attr_in_precision(graph_attr: dict[str, Tensor], dtype: Any) -> dict[str, Tensor]:
    """The same of what graphs have as a whole."""
    kind = torch.from_numpy(np.empty(0, dtype)).dtype
    return {name: value.to(kind) if value.is_floating_point() else value for name, value in graph_attr.items()}


def read_edges(graphs: GraphSet, program: Program) -> GraphSet:
    """Without the attributes of edges, but for one that stands for all, where no step tells edges apart by them."""
    if any(step.edges for step in program.steps):
        return graphs
    attr = None if graphs.edge_attr is None else graphs.edge_attr[:1]
    return replace(graphs, edge_attr=attr, edge_kind=np.zeros_like(graphs.edge_kind))


def compile_rows(
    graphs: GraphSet, edits: Edits, program: Program, kind: np.ndarray, progress: bool = False, threads: int | None = None
) -> list[StepRows]:
    """The distinct rows of every step that some subgraph has, arranged by graph."""
    rows: list[StepRows] | None = None
    for found in in_chunks(graphs, edits, program, kind, progress, threads):
        if rows is None:
            rows = found
        else:
            merge_steps(rows, found, program)
    assert rows is not None
    arrange_steps(rows, program)
    return rows


def _path(cache: str | Path, key: dict[str, Any]) -> Path:
    """The file, or the one in a folder that is named after graphs, policy and program."""
    path = Path(cache)
    if path.is_dir() or not (path.suffix or path.is_file()):
        name = key["policy"], str(len(key["program"]["steps"])), key["fingerprint"][:12], key["digest"][:8]
        path = path / f"{'-'.join(name)}.enfa"
    return path


def compile_program(
    dataset: Sequence[Data],
    policy: Policy,
    program: Program,
    cls: type[Plan] = Plan,
    cache: str | Path | None = None,
    progress: bool = True,
    *,
    kind: str = "distinct",
    threads: int | None = None,
    ahead: bool = True,
    dtype: Any = None,
    unshared: int | str | None = None,
    checked: tuple[GraphSet, Edits, dict[str, Tensor]] | None = None,
) -> CompiledDataset:
    """Compile a PyG dataset, or a list of graphs, for one policy and one program. See :func:`enfa.compile`.

    ``cls``: what plans are made as; ``dtype``: numpy's floating-point type of features, if not their own; ``checked``: the
    graphs, the policy's edits and the graphs' attributes, where these have been looked at, and need no gradients.
    """
    if threads is not None and (not isinstance(threads, int) or isinstance(threads, bool) or threads < 1):
        raise ValueError(f"Expected threads to be an integer >= 1, or None for as many as there are cores, got {threads!r}")
    if checked is None:
        dataset = read_once(dataset)
        graphs = check_graphs(dataset)
        refuse_gradients(dataset)
        edits, attr = edits_by(policy, graphs), graph_attributes(dataset)
    else:
        graphs, edits, attr = checked
    check_program(program, graphs, edits, repr(policy))
    for name, value in attr.items():
        if value.requires_grad:
            raise ValueError(f"Expected '{name}' without a gradient to compile, got requires_grad=True: use enfa.make_plan")
    y, given = labels(dataset), (graphs, edits)
    looks = kind == "distinct" and unshared == AUTO
    if kind == "distinct":  # whatever a program says that comes from another dataset
        program = check_unshared(replace(program, unshared=None if looks else unshared))  # type: ignore[arg-type]
    key, graphs, edits, attr = keyed(graphs, edits, y, attr, policy, program, kind, dtype)
    path = None
    if cache is not None and ahead:
        wanted = wanting(key) if looks else key
        path = _path(cache, wanted)
        if path.exists():
            try:
                return load_compiled(path, expect=wanted, policy=policy, cls=cls, needs=program.needs)
            except CorruptFileError as error:
                again = "give another cache, or delete it, if it is one that enfa has written: it is compiled again"
                raise CorruptFileError(f"{error}: {again}") from error
        check_writable(path)  # before it takes minutes to compile
    if looks:
        program = check_unshared(replace(program, unshared=end_of_sharing(*given, program)))
        key = key_of(policy, program, kind, key["dtype"], key["fingerprint"])
    compiled = compile_checked(key, graphs, edits, y, attr, policy, program, cls, ahead, progress, threads)
    if path is not None:
        compiled.save(path)
    return compiled


def keyed(
    graphs: GraphSet,
    edits: Edits,
    y: Tensor | None,
    attr: dict[str, Tensor],
    policy: Policy,
    program: Program,
    kind: str,
    dtype: Any,
) -> tuple[dict[str, Any], GraphSet, Edits, dict[str, Tensor]]:
    """The key of what is compiled from these graphs, and graphs, edits and attributes in the precision of the model."""
    given, changed = fingerprint(graphs, edits, y, attr), None
    if dtype is None:
        edits = marks_beside(edits, graphs.x)
    else:
        before = graphs, edits, attr
        graphs, edits = in_precision(graphs, edits, dtype)
        attr = attr_in_precision(attr, dtype)
        changed = np.dtype(dtype).name if _types(graphs, edits, attr) != _types(*before) else None
    return key_of(policy, program, kind, changed, given), graphs, edits, attr


def compile_checked(
    key: dict[str, Any],
    graphs: GraphSet,
    edits: Edits,
    y: Tensor | None,
    attr: dict[str, Tensor],
    policy: Policy,
    program: Program,
    cls: type[Plan] = Plan,
    ahead: bool = True,
    progress: bool = False,
    threads: int | None = None,
) -> CompiledDataset:
    """From what :func:`keyed` returns, in which nothing is checked again."""
    graphs = read_edges(graphs, program)
    if key["kind"] != "distinct" or not ahead:
        return CompiledDataset(key, policy, program, cls, graphs=(graphs, edits), y=y, graph_attr=attr)
    sources, start = sources_of_steps(graphs, edits, program)
    rows = compile_rows(graphs, edits, program, start, progress, threads)
    tail = None if program.unshared is None else (graphs, edits)
    return CompiledDataset(key, policy, program, cls, rows=rows, sources=sources, graphs=tail, y=y, graph_attr=attr)


def _types(graphs: GraphSet, edits: Edits, attr: dict[str, Tensor]) -> list[Any]:
    arrays = graphs.x, graphs.edge_attr, edits.marks, edits.edge_marks
    return [None if array is None else array.dtype for array in arrays] + [value.dtype for value in attr.values()]
