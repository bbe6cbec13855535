"""Graphs added to a compiled dataset are planned as if they had been compiled with the others."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from program_cases import CASES, Case, Chain, Roots, assert_exact, graphs_of
from torch_geometric.data import Data

import enfa
from enfa.batch.dataset import CompiledDataset
from enfa.edits import Edits
from enfa.edits.policy import GraphView
from enfa.graphs import GraphSet
from enfa.testing import random_graphs


def _more(case: Case) -> list[Data]:
    """With features, and attributes of edges, that the others lack; and a graph without nodes."""
    wider = {"channels": [5, 3], "edge_channels": [4, 3]} if isinstance(case.channels["channels"], list) else {}
    graphs = graphs_of(case, 5, 8, False, **wider)
    for graph in graphs[:2]:
        graph.x = graph.x + 1 if not wider else graph.x
    empty = graphs[0].clone()
    empty.x, empty.edge_index, empty.edge_attr = empty.x[:0], empty.edge_index[:, :0], empty.edge_attr[:0]
    return [*graphs[:3], empty, *graphs[3:]]


@pytest.mark.parametrize("name", CASES)
def test_what_compiling_everything_at_once_would_plan(name: str, tmp_path: Path) -> None:
    """Loaded from a file in between, and in two parts."""
    case = CASES[name]
    graphs, more = graphs_of(case), _more(case)
    case.compiled(graphs).save(tmp_path / "x.enfa")
    compiled = enfa.load_compiled(tmp_path / "x.enfa")
    assert compiled.extend(more[:2]).tolist() == [16, 17]
    assert compiled.extend(more[2:]).tolist() == [18, 19, 20, 21]
    at_once = case.compiled(graphs + more)
    assert compiled.cost().rows == at_once.cost().rows and compiled.cost().edges == at_once.cost().edges
    assert compiled.num_pairs == at_once.num_pairs and compiled.num_subgraphs == at_once.num_subgraphs
    np.testing.assert_array_equal(compiled.rows_per_graph(), at_once.rows_per_graph())
    compiled.save(tmp_path / "y.enfa")
    for found in (compiled, enfa.load_compiled(tmp_path / "y.enfa")):
        for chosen in ([3, 0, 9], [18, 1, 20, 16], list(range(22))):
            assert_exact(case, found[chosen], [(graphs + more)[g] for g in chosen])
        plan = found[[17, 2]]
        assert plan.y.tolist() == [1, 2] and plan.graph_attr["weight"].tolist() == [1, 2] and plan.limits == at_once[[0]].limits


def _numbers(compiled: CompiledDataset) -> tuple:
    return compiled.cost(), compiled.key, len(compiled), repr(compiled)


def test_labels_of_added_graphs() -> None:
    case = CASES["ds"]
    compiled, more = case.compiled(graphs_of(case)), graphs_of(case, 3, 5, False)
    bare = [graph.clone().update({"y": None}) for graph in more]
    assert compiled[compiled.extend(bare)].y.tolist() == [-1] * 3
    labelled = [graph.clone().update({"y": torch.tensor([40 + i])}) for i, graph in enumerate(more)]
    assert compiled[compiled.extend(labelled)].y.tolist() == [40, 41, 42]
    before = _numbers(compiled)
    with pytest.raises(ValueError, match=re.escape("Expected 'y' of shape [] per graph, as compiled, got [2]")):
        compiled.extend([graph.clone().update({"y": torch.ones(1, 2)}) for graph in more])
    assert _numbers(compiled) == before


def test_labels_of_nodes_of_added_graphs() -> None:
    case = CASES["ds"]
    compiled, more = case.compiled(graphs_of(case)), graphs_of(case, 3, 5, False)
    count = int(compiled.node_ptr[-1])
    compiled.node_y = torch.arange(count)
    new = compiled.extend([graph.clone().update({"y": None}) for graph in more])
    assert compiled[new].y.tolist() == [-1] * sum(graph.num_nodes for graph in more)
    assert compiled[: new[0]].y.tolist() == list(range(count))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (torch.tensor([False]), None, "labels of torch.bool have no number for those that are not known"),
        (torch.tensor([3], dtype=torch.uint8), None, "labels of torch.uint8 have no number"),
        (
            torch.tensor([3], dtype=torch.int8),
            torch.tensor([300]),
            "Expected 'y' that torch.int8 holds, as compiled, got [300",
        ),
        (
            torch.tensor([3], dtype=torch.int8),
            torch.tensor([200], dtype=torch.uint8),
            "that torch.int8 holds, as compiled, got [200",
        ),
        (
            torch.tensor([3], dtype=torch.uint8),
            torch.tensor([-1], dtype=torch.int8),
            "that torch.uint8 holds, as compiled, got [-1",
        ),
        (torch.tensor([True]), torch.tensor([2]), "Expected 'y' that torch.bool holds"),
    ],
)
def test_labels_that_a_type_does_not_hold(old: torch.Tensor, new: torch.Tensor | None, message: str) -> None:
    case = CASES["ds"]
    graphs = [graph.clone().update({"y": old}) for graph in graphs_of(case)]
    compiled = case.compiled(graphs)
    with pytest.raises(ValueError, match=re.escape(message)):
        compiled.extend([graph.clone().update({"y": new}) for graph in graphs[:3]])
    assert len(compiled) == len(graphs) and compiled[[0]].y.equal(old)


def test_an_attribute_that_a_type_does_not_hold() -> None:
    case = CASES["ds"]
    graphs = [graph.clone().update({"few": torch.tensor([3], dtype=torch.int8)}) for graph in graphs_of(case)]
    compiled = case.compiled(graphs)
    with pytest.raises(ValueError, match=re.escape("Expected 'few' that torch.int8 holds, as compiled, got [300]")):
        compiled.extend([graphs[0].clone().update({"few": torch.tensor([300])})])


def test_attributes_of_added_graphs() -> None:
    case = CASES["ds"]
    compiled, more = case.compiled(graphs_of(case)), graphs_of(case, 3, 5, False)
    before = _numbers(compiled)
    for changes, message in (
        ({"weight": None}, "Expected 'weight' of shape [] for every graph, as compiled, got none"),
        ({"several": torch.zeros(1, 2)}, "Expected 'several' of shape [2, 3] for every graph, as compiled, got [2]"),
        ({"several": torch.zeros(1, 2, 3)}, "Expected 'several' to hold torch.int64, as compiled, got torch.float32"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            compiled.extend([graph.clone().update(changes) for graph in more])
    assert _numbers(compiled) == before
    square = more[0].clone().update({"weight": 7, "further": 3.0})  # what the others lack is left alone
    assert compiled[compiled.extend([square])].graph_attr["weight"].tolist() == [7.0]
    assert compiled[:].graph_attr.keys() == {"weight", "several"}


@pytest.mark.parametrize("name", ["ds, edges", "full"])
def test_a_refused_extension_leaves_the_dataset_alone(name: str) -> None:
    case = CASES[name]
    compiled, graph = case.compiled(graphs_of(case)), graphs_of(case)[1]
    before = _numbers(compiled)
    wide = graph.clone().update({"x": torch.cat([graph.x, graph.x], 1)})
    with pytest.raises(ValueError, match="Expected 'x' with 2 columns of int64, as compiled, got 4"):
        compiled.extend([wide])
    with pytest.raises(ValueError, match="Expected graphs with 'edge_attr', as compiled"):
        compiled.extend([graph.clone().update({"edge_attr": None})])
    assert _numbers(compiled) == before


@pytest.mark.parametrize("name", ["ds", "full, kept nodes"])
def test_attributes_of_edges_that_no_step_reads_are_not_looked_at(name: str) -> None:
    case = CASES[name]
    with_them, without = graphs_of(case), [graph.clone().update({"edge_attr": None}) for graph in graphs_of(case)]
    for first, then in ((with_them, without), (without, with_them)):
        compiled = case.compiled(first)
        compiled.extend(then)
        assert_exact(case, compiled[[3, 0]], [first[3], first[0]])
        assert_exact(case, compiled[[17, 20]], [then[1], then[4]])


def test_precision_is_that_of_the_model_compiled_for() -> None:
    graphs, policy = random_graphs(4, 6, seed=1), enfa.NodeMarking()
    torch.manual_seed(0)
    double, single = enfa.compile(graphs, policy, Chain().double(), progress=False), Chain()
    assert double.key["dtype"] == "float64" and double[:].x_rows.dtype == torch.float64
    double.extend(random_graphs(3, 6, seed=2))
    assert double[:].x_rows.dtype == double[:].mark_rows.dtype == torch.float64
    plain = enfa.compile(graphs, policy, single, progress=False)
    assert plain.key["dtype"] is None and plain[:].x_rows.dtype == torch.float32
    with pytest.raises(ValueError, match="Expected 'x' with 3 columns of float32, as compiled, got 3 columns of float64"):
        plain.extend([graph.clone().update({"x": graph.x.double()}) for graph in graphs])


def test_marks_taken_from_the_graphs() -> None:
    """Every set of graphs has its own histograms of degrees."""
    case = CASES["ds, edge marks"]
    for kind in ("distinct", "full"):
        few, more = graphs_of(case, 2, 1, False), graphs_of(case, 6, 4)
        compiled = replace(case, kind=kind).compiled(few)
        before = len(compiled[:].edge_mark_rows)
        compiled.extend(more)
        assert len(compiled[:].edge_mark_rows) > before
        compiled.extend(few[:1])  # nothing new
        assert_exact(case, compiled[:], [*few, *more, few[0]])
        assert_exact(case, compiled[[9, 0, 4]], [more[7], few[0], more[2]])


class LargestMark(enfa.Policy):
    """Marks each node with its graph's size: another table for other graphs."""

    def __init__(self, unmarked: float = 0.0) -> None:
        self.unmarked = unmarked

    def edits(self, graphs: GraphSet) -> Edits:
        sizes, nodes = np.unique(np.diff(graphs.node_ptr)), np.arange(graphs.num_nodes)
        mark = 1 + np.searchsorted(sizes, np.diff(graphs.node_ptr)[graphs.graph])
        table = np.append(self.unmarked, sizes)[:, None]
        return Edits.build(np.diff(graphs.node_ptr), (np.ones_like(nodes), nodes, mark), marks=table)


@pytest.mark.parametrize("kind", ["distinct", "full"])
def test_node_marks_taken_from_the_graphs(kind: str) -> None:
    policy = LargestMark()
    case = Case(policy, Chain, kind)
    few, more = graphs_of(case, 3, 1, False), graphs_of(case, 6, 2)
    compiled = case.compiled(few)
    compiled.extend(more)
    assert_exact(case, compiled[:], [*few, *more])
    before = _numbers(compiled)
    policy.unmarked = 0.5
    with pytest.raises(ValueError, match=r"'marks' to begin with \[0.0\], as compiled, got \[0.5\]"):
        compiled.extend(more)
    assert _numbers(compiled) == before


class ByPosition(enfa.Policy):
    """As many subgraphs as a graph's place in the dataset says; of some, by what they keep."""

    def bag(self, graph: GraphView) -> Iterable[enfa.Subgraph]:
        for v in range(min(1 + graph.position % 3, graph.num_nodes)):
            one = enfa.Subgraph().mark_node(v).rooted_at(v)
            yield one.keep_nodes(range(v + 1)) if graph.position % 4 == 3 else one


@pytest.mark.parametrize("kind", ["distinct", "full"])
@pytest.mark.parametrize("policy", [enfa.Subsample(enfa.NodeMarking(), count=2, seed=3), ByPosition()], ids=repr)
@pytest.mark.parametrize("model", [Chain, Roots])
def test_policies_that_depend_on_the_place_of_a_graph(policy: enfa.Policy, kind: str, model: type) -> None:
    case = Case(policy, model, kind)
    graphs = [*graphs_of(case, 3, 1, False), *_more(case)]
    compiled, at_once = case.compiled(graphs[:3]), case.compiled(graphs)
    compiled.extend(graphs[3:6])
    compiled.extend(graphs[6:7])  # without nodes, by itself
    compiled.extend(graphs[7:])
    assert compiled.sub_ptr.tolist() == at_once.sub_ptr.tolist() and compiled.cost().rows == at_once.cost().rows
    assert_exact(case, compiled[:], graphs)
    net = case.made().eval()
    torch.testing.assert_close(net(compiled[[7, 3, 1]]), net(at_once[[7, 3, 1]]), rtol=1e-10, atol=1e-10)


class TwoRoots(enfa.NodeMarking):
    """One root a subgraph, or two."""

    count = 1

    def edits(self, graphs: GraphSet) -> Edits:
        edits = super().edits(graphs)
        assert edits.root is not None
        return replace(edits, root=np.repeat(edits.root, self.count, axis=1))


@pytest.mark.parametrize("kind", ["distinct", "full"])
def test_another_number_of_roots_is_refused(kind: str) -> None:
    policy = TwoRoots()
    case = Case(policy, Roots, kind)
    compiled = case.compiled(graphs_of(case))
    before = _numbers(compiled)
    policy.count = 2
    with pytest.raises(ValueError, match=r"Expected 1 root\(s\) a subgraph, as compiled, got 2"):
        compiled.extend(graphs_of(case))
    assert _numbers(compiled) == before


@pytest.mark.parametrize("name", ["ds, edges", "dss", "rooted", "sun", "nodes", "full"])
def test_a_dataset_of_nothing_is_extended(name: str) -> None:
    case = CASES[name]
    empty, graphs = _more(case)[3], graphs_of(case)
    compiled = case.compiled([empty])
    compiled.extend([empty, *graphs])
    assert compiled[[0, 1]].num_pairs == 0
    assert_exact(case, compiled[:], [empty, empty, *graphs])
