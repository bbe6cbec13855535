"""graphs, edits, program -> plan."""

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.reference.full import full_step_plan
from enfa.plan.reference.roots import local_roots
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.slicing.slice import Slicer
from enfa.plan.slicing.sources import Sources
from enfa.plan.step import Program
from enfa.plan.table import Plan

__all__ = ["sources_of_steps", "step_plan_of"]


def sources_of_steps(graphs: GraphSet, edits: Edits, program: Program) -> tuple[Sources, np.ndarray]:
    """What a :class:`Slicer` needs beside the rows, and the kind of each node at the start."""
    kind, feature, of_graph = start_kinds(graphs, program.share)
    sources = Sources(
        program, node_ptr=graphs.node_ptr, sub_ptr=edits.sub_ptr, sub_size=edits.sizes(graphs),
        start_feature=feature, start_graph=of_graph, x=graphs.x, marks=edits.marks, edge_attr=graphs.edge_attr,
        edge_marks=edits.edge_marks, categories=graphs.categories,
        root=local_roots(graphs, edits) if any(step.op == "root" for step in program.steps) else None,
    )  # fmt: skip
    return sources, kind


def step_plan_of(graphs: GraphSet, edits: Edits, program: Program, kind: str, cls: type[Plan] = Plan) -> Plan:
    """A plan of any kind, from graphs and edits that have been checked."""
    if kind == "full":
        return full_step_plan(graphs, edits, program, cls)
    sources, start = sources_of_steps(graphs, edits, program)
    rows = step_rows_of(graphs, edits, program, start, shared=kind == "distinct")
    plan = Slicer(rows, sources, cls, None if program.unshared is None else (graphs, edits)).plan(np.arange(graphs.num_graphs))
    plan.kind = kind
    return plan
