"""graphs -> edits -> plan."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch_geometric.data import Data

from enfa.edits import Edits, Policy
from enfa.edits.check import edits_by
from enfa.graphs import GraphSet, check_graphs
from enfa.graphs.labels import labels_of_graphs
from enfa.graphs.names import unknown
from enfa.plan.distinct import distinct_rows_of
from enfa.plan.ego import ego_plan
from enfa.plan.expand import largest_values
from enfa.plan.full import full_plan
from enfa.plan.gradients import attached, needing, numbered
from enfa.plan.slice import Slicer, Sources
from enfa.plan.spec import Spec
from enfa.plan.steps.builder import start_kinds
from enfa.plan.steps.check import KINDS, check_kind
from enfa.plan.steps.roots import local_roots
from enfa.plan.table import Plan

__all__ = ["KINDS", "check_kind", "check_spec", "edits_of", "make_plan", "plan_of", "sources_of", "unknown"]

def check_spec(spec: Spec) -> Spec:
    """Refuse what has a spec, a model or a plan, in its place."""
    if isinstance(spec, Spec):
        return spec
    got = f"the class {spec.__name__}" if isinstance(spec, type) else type(spec).__name__
    if isinstance(getattr(spec, "spec", None), Spec):
        got += f": pass {'plan' if isinstance(spec, Plan) else 'model'}.spec"
    raise TypeError(f"Expected a Spec, such as model.spec, got {got}")


def edits_of(graphs: GraphSet, policy: Policy, spec: Spec) -> Edits:
    """The policy's edits, checked against the graphs and against what the model can see."""
    edits = edits_by(policy, graphs)
    if edits.edge_marks.shape[1] and not spec.edge_attr:
        raise ValueError(
            f"{policy!r} marks edges, but the model's conv does not read edge attributes: use one that does "
            f"(conv='gine') and set edge_mark_channels={edits.edge_marks.shape[1]}"
        )
    if spec.output == "root" and (edits.root is None or edits.root.shape[1] not in (1, 2)):
        raise ValueError(
            f"{policy!r} does not say which node each subgraph is about, but the model's readout='root' reads that: "
            f"use a policy with roots, such as NodeMarking, EgoNets or EdgeMarking, or readout='node'"
        )
    if spec.edge_attr and graphs.edge_attr is None and not edits.edge_marks.shape[1]:
        raise ValueError(
            "Expected 'edge_attr' in the graphs, because the model reads edge attributes; graph 0 has none"
        )
    return edits


def sources_of(graphs: GraphSet, edits: Edits, spec: Spec) -> tuple[Sources, np.ndarray]:
    """What a :class:`Slicer` needs beside the rows, and the kind of each node in table 0."""
    kind, feature, of_graph = start_kinds(graphs, spec.share)
    sources = Sources(
        spec, graphs.node_ptr, edits.sub_ptr, edits.sizes(graphs), feature, of_graph, graphs.x, edits.marks,
        graphs.edge_attr if spec.edge_attr else None, edits.edge_marks, largest_values(graphs),
        edits.keeps, local_roots(graphs, edits) if spec.output == "root" else None,
    )  # fmt: skip
    return sources, kind


def plan_of(graphs: GraphSet, edits: Edits, spec: Spec, kind: str = "distinct") -> Plan:
    """A plan from graphs and edits that have been checked."""
    if check_kind(kind) == "full":
        return full_plan(graphs, edits, spec)
    if kind == "ego":
        return ego_plan(graphs, edits, spec)
    sources, start = sources_of(graphs, edits, spec)
    rows = distinct_rows_of(graphs, edits, spec, start)
    return Slicer(rows, sources, anew=True).plan(np.arange(graphs.num_graphs)).check()


def make_plan(graphs: Sequence[Data], policy: Policy, spec: Spec, kind: str = "distinct") -> Plan:
    """The plan of a list of PyG graphs.

    Args:
        graphs: ``Data`` objects with ``x`` (float features, or int64 categorical columns), ``edge_index`` and,
            where the model reads them, ``edge_attr``.
        policy: what makes the subgraphs, such as ``enfa.NodeMarking()``.
        spec: ``model.spec``.
        kind: ``"distinct"`` (every distinct row once), ``"ego"`` (ENFA as published) or ``"full"`` (the
            conventional model). All give the same outputs and gradients.

    Where ``x`` or ``edge_attr`` of a graph has ``requires_grad``, gradients flow back into it; rows are then shared
    between subgraphs only. As for anything computed from a tensor, that works once for each plan.

    ``plan.y`` are the graphs' labels, stacked; None where they have none, or none that can be stacked (those of nodes).
    """
    check_kind(kind)
    check_spec(spec)
    graph_set = check_graphs(graphs)
    y, edits = labels_of_graphs(graphs), edits_of(graph_set, policy, spec)
    names = needing(graphs)
    plan = attached(plan_of(numbered(graph_set, names), edits, spec, kind), graphs, names)
    plan.y = y
    return plan
