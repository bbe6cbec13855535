"""Graphs added to a compiled dataset, where the policy treats them otherwise than the ones before."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import enfa
from enfa.edits import Edits
from enfa.edits.policy import GraphView
from enfa.graphs import GraphSet
from enfa.testing import random_graphs

CHANNELS = {"channels": [3, 2], "edge_channels": [3, 2]}


def _model(edge_marks: int, marks: int = 1, context: str | None = None) -> torch.nn.Module:
    torch.manual_seed(0)
    options = {"edge_channels": [3, 2], "mark_channels": marks, "edge_mark_channels": edge_marks}
    if context is None:
        return enfa.DSGNN([3, 2], 6, 2, 3, "gine", **options).double()
    return enfa.DSSGNN([3, 2], 6, 2, 3, "gine", context, **options).double()


@pytest.mark.parametrize("context", [None, "dss", "mpnn"])
@pytest.mark.parametrize("kind", ["distinct", "ego"])
def test_marks_taken_from_the_graphs(context: str | None, kind: str, tmp_path: Path, assert_exact: Callable) -> None:
    """Every set of graphs has its own histograms of degrees."""
    policy, model = enfa.EdgeMarking("degrees", bins=4), _model(5, context=context)
    few, more = random_graphs(3, 6, seed=1, **CHANNELS), random_graphs(8, 12, seed=2, **CHANNELS)
    compiled = enfa.compile(few, policy, model.spec, progress=False, kind=kind)
    before = len(compiled.sources.edge_marks)
    assert compiled.extend(more).tolist() == list(range(3, 11))
    assert len(compiled.sources.edge_marks) > before + 2
    compiled.extend(few[:1])  # nothing new
    compiled.save(tmp_path / "x.enfa")
    graphs = [*few, *more, few[0]]
    for found in (compiled, enfa.load_compiled(tmp_path / "x.enfa")):
        for chosen in ([0, 1, 2], [11, 4], [9, 1, 5, 3, 0, 10, 7, 2], list(range(12))):
            assert_exact(model, found[chosen], [graphs[g] for g in chosen], policy)
    if kind == "distinct":  # rows are shared as if all had been compiled at once
        at_once = enfa.compile(graphs, policy, model.spec, progress=False)
        assert compiled.cost().rows == at_once.cost().rows and compiled.cost().edges == at_once.cost().edges


class LargestMark(enfa.Policy):
    """Marks each node with its graph's size: another table for other graphs."""

    def __init__(self, unmarked: float = 0.0) -> None:
        self.unmarked = unmarked

    def edits(self, graphs: GraphSet) -> Edits:
        sizes, nodes = np.unique(np.diff(graphs.node_ptr)), np.arange(graphs.num_nodes)
        mark = 1 + np.searchsorted(sizes, np.diff(graphs.node_ptr)[graphs.graph])
        table = np.append(self.unmarked, sizes)[:, None]
        return Edits.build(np.diff(graphs.node_ptr), (np.ones_like(nodes), nodes, mark), marks=table)


def test_node_marks_taken_from_the_graphs(assert_exact: Callable) -> None:
    policy, model = LargestMark(), _model(0)
    few, more = random_graphs(3, 6, seed=1, **CHANNELS), random_graphs(8, 12, seed=2, **CHANNELS)
    compiled = enfa.compile(few, policy, model.spec, progress=False)
    before = len(compiled.sources.marks)
    compiled.extend(more)
    assert len(compiled.sources.marks) > before
    assert_exact(model, compiled[:], [*few, *more], policy)
    rows = compiled.cost().rows
    policy.unmarked = 0.5
    with pytest.raises(ValueError, match=r"'marks' to begin with \[0.0\], as compiled, got \[0.5\]"):
        compiled.extend(more)
    assert compiled.cost().rows == rows and len(compiled) == 11


class Prefixes(enfa.Policy):
    """Of large graphs the nodes up to each one, said by what is kept; small ones have each node marked."""

    def edits(self, graphs: GraphSet) -> Edits:
        size, nodes = np.diff(graphs.node_ptr)[graphs.graph], np.arange(graphs.num_nodes)
        large = size > 6
        place = nodes - graphs.node_ptr[graphs.graph]
        counts = np.where(large, place + 1, 1)
        node = np.concatenate([np.arange(v - p, v + 1) if big else [v] for v, p, big in zip(nodes, place, large)])
        marks = ((0.0,), (1.0,))
        keeps = large if large.any() else None
        return Edits.build(
            np.diff(graphs.node_ptr), (counts, node, np.repeat(np.where(large, 0, 1), counts)), marks=marks, keeps=keeps
        )


@pytest.mark.parametrize("small_first", [True, False])
def test_only_some_graphs_have_subgraphs_that_list_what_they_keep(small_first: bool, assert_exact: Callable) -> None:
    small, large = random_graphs(4, 5, seed=1, **CHANNELS), random_graphs(5, 12, seed=4, **CHANNELS)
    first, then = (small, large) if small_first else (large, small)
    policy, model = Prefixes(), _model(0)
    compiled = enfa.compile(first, policy, model.spec, progress=False)
    compiled.extend(then)
    assert compiled.sources.keeps is not None and len(compiled.sources.keeps) == compiled.num_subgraphs
    assert_exact(model, compiled[:], [*first, *then], policy)
    assert_exact(model, compiled[[8, 0, 5]], [[*first, *then][g] for g in (8, 0, 5)], policy)


class Roots(enfa.NodeMarking):
    """One root a subgraph, or two."""

    count = 1

    def edits(self, graphs: GraphSet) -> Edits:
        edits = super().edits(graphs)
        assert edits.root is not None
        return replace(edits, root=np.repeat(edits.root, self.count, axis=1))


def test_another_number_of_roots_is_refused() -> None:
    graphs, policy = random_graphs(3, 5, seed=1, **CHANNELS), Roots()
    compiled = enfa.compile(graphs, policy, enfa.Spec(2, output="root"), progress=False)
    policy.count = 2
    with pytest.raises(ValueError, match=r"Expected 1 root\(s\) a subgraph, as compiled, got 2"):
        compiled.extend(graphs)
    assert len(compiled) == 3 and compiled[:].readout.root_row is not None


def test_a_dataset_of_fewer_layers_knows_nothing_of_new_marks(assert_exact: Callable) -> None:
    """The two share their tables until one of them is extended."""
    policy, model = enfa.EdgeMarking("degrees", bins=4), _model(5)
    few, more = random_graphs(3, 6, seed=1, **CHANNELS), random_graphs(8, 12, seed=2, **CHANNELS)
    torch.manual_seed(0)
    shallow = enfa.DSGNN([3, 2], 6, 2, 2, "gine", edge_channels=[3, 2], edge_mark_channels=5).double()
    for extended in (0, 1):
        both = [enfa.compile(few, policy, model.spec, progress=False)]
        both.append(both[0].first_layers(2))
        both[extended].extend(more)
        models = (model, shallow)
        assert_exact(models[1 - extended], both[1 - extended][:], few, policy)
        assert_exact(models[extended], both[extended][:], [*few, *more], policy)


class ByPosition(enfa.Policy):
    """As many subgraphs as a graph's place in the dataset says."""

    def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
        for v in range(min(1 + graph.position % 3, graph.num_nodes)):
            yield enfa.Subgraph().mark_node(v).rooted_at(v)


@pytest.mark.parametrize("kind", ["distinct", "full"])
@pytest.mark.parametrize("policy", [enfa.Subsample(enfa.NodeMarking(), count=2, seed=3), ByPosition()], ids=repr)
@pytest.mark.parametrize("output", ["graph", "root"])
def test_what_compiling_everything_at_once_would_plan(
    policy: enfa.Policy, kind: str, output: str, assert_exact: Callable
) -> None:
    """Also where the policy draws, or depends on the place of a graph, and for graphs without nodes."""
    empty = random_graphs(1, 1, seed=1, **CHANNELS)[0]
    empty.x, empty.edge_index, empty.edge_attr = empty.x[:0], empty.edge_index[:, :0], empty.edge_attr[:0]
    graphs = [*random_graphs(4, 6, seed=1, **CHANNELS), empty, *random_graphs(5, 9, seed=2, **CHANNELS), empty]
    torch.manual_seed(0)
    options = {"readout": output, "norm": None} if output == "root" else {}  # pruned: only what a root reads
    model = enfa.DSGNN([3, 2], 6, 2, 3, "gine", edge_channels=[3, 2], **options).double()
    compiled = enfa.compile(graphs[:3], policy, model.spec, progress=False, kind=kind)
    compiled.extend(graphs[3:5])
    compiled.extend(graphs[5:])
    at_once = enfa.compile(graphs, policy, model.spec, progress=False, kind=kind)
    assert compiled.sources.sub_ptr.tolist() == at_once.sources.sub_ptr.tolist()
    assert compiled.cost().rows == at_once.cost().rows
    assert_exact(model, compiled[:], graphs, policy)
    torch.testing.assert_close(model(compiled[[9, 4, 1]]), model(at_once[[9, 4, 1]]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", [{}, {"readout": "root", "norm": None}, {"readout": "node"}], ids=str)
def test_a_dataset_of_nothing_is_extended(options: dict, assert_exact: Callable) -> None:
    graphs = random_graphs(3, 6, seed=1, **CHANNELS)
    empty = graphs[0].clone()
    empty.x, empty.edge_index, empty.edge_attr = empty.x[:0], empty.edge_index[:, :0], empty.edge_attr[:0]
    torch.manual_seed(0)
    model = enfa.DSGNN([3, 2], 6, 2, 3, "gine", edge_channels=[3, 2], **options).double()
    compiled = enfa.compile([empty], enfa.NodeMarking(), model.spec, progress=False)
    compiled.extend([empty, *graphs])
    assert compiled[[0, 1]].num_pairs == 0
    assert_exact(model, compiled[:], [empty, empty, *graphs], enfa.NodeMarking())


def test_datasets_that_share_tables_are_extended_by_other_graphs(assert_exact: Callable) -> None:
    """Contexts of nodes belong to a dataset, not to the tables that it shares with one of fewer layers."""
    policy, graphs = enfa.NodeMarking(), random_graphs(9, 6, seed=1, **CHANNELS)
    models = []
    for layers in (3, 2):
        torch.manual_seed(0)
        models.append(enfa.DSSGNN([3, 2], 6, 2, layers, "gine", edge_channels=[3, 2]).double())
    deep = enfa.compile(graphs[:3], policy, models[0].spec, progress=False)
    shallow = deep.first_layers(2)
    deep.extend(graphs[3:6])
    shallow.extend(graphs[6:])
    assert_exact(models[0], deep[:], graphs[:6], policy)
    assert_exact(models[1], shallow[:], [*graphs[:3], *graphs[6:]], policy)
