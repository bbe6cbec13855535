"""What a compiled dataset says of itself, and which selections it takes."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import enfa


@pytest.fixture
def compiled(graphs: list[Data]) -> enfa.CompiledDataset:
    return enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2), progress=False)


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
def test_rows_per_graph_are_those_of_each_graphs_own_plan(
    model: nn.Module, policy: enfa.Policy, kind: str, graphs: list[Data]
) -> None:
    compiled = enfa.compile(graphs, policy, model.spec, progress=False, kind=kind)
    found = compiled.rows_per_graph()
    alone = np.array([sum(compiled[g].cost().rows) for g in range(len(compiled))])
    if kind == "ego":
        assert (found >= alone).all()
    else:
        np.testing.assert_array_equal(found, alone)
    batch = [5, 3, 16]
    assert max(alone[batch]) <= sum(compiled[batch].cost().rows) <= sum(found[batch])


def test_sizes(compiled: enfa.CompiledDataset, graphs: list[Data]) -> None:
    nodes = [graph.num_nodes for graph in graphs]
    assert len(compiled) == len(graphs)
    assert compiled.num_subgraphs == sum(max(n, 1) for n in nodes)
    assert compiled.num_pairs == sum(n * n for n in nodes) == compiled[:].num_pairs
    assert compiled.cost().rows == compiled[:].cost().rows


def test_every_way_to_choose_graphs(compiled: enfa.CompiledDataset) -> None:
    mask = np.zeros(len(compiled), bool)
    mask[[2, 5]] = True
    for chosen in ([2, 5], np.array([2, 5]), torch.tensor([2, 5]), mask, torch.from_numpy(mask), slice(2, 6, 3)):
        assert compiled[chosen].graph_ids.tolist() == [2, 5]
        assert compiled[chosen].y.tolist() == [2, 5]
    assert compiled[7].graph_ids.tolist() == [7]
    assert compiled[[5, 2]].graph_ids.tolist() == [5, 2]
    assert compiled[-1].graph_ids.tolist() == [22] and compiled[[-23, 3, -2]].graph_ids.tolist() == [0, 3, 21]


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ([0, 99], IndexError, "Expected graphs 0 to 22, got 0 to 99"),
        ([-24], IndexError, "Expected graphs 0 to 22, got -24 to -24"),
        ([22, -1], ValueError, "at most once"),
        ([3, 3], ValueError, "at most once"),
        ([0.5], IndexError, "float64"),
        ([[1, 2]], IndexError, "shape [1, 2]"),
        ([True, False], IndexError, "Expected a mask of shape [23], got [2]"),
    ],
)
def test_wrong_choices(compiled: enfa.CompiledDataset, chosen: list, error: type, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        compiled[chosen]


def test_labels_of_added_graphs(compiled: enfa.CompiledDataset, new_graphs: list[Data]) -> None:
    assert compiled[compiled.extend(new_graphs)].y.tolist() == [-1] * len(new_graphs)
    labelled = [graph.clone().update({"y": torch.tensor([40 + i])}) for i, graph in enumerate(new_graphs)]
    assert compiled[compiled.extend(labelled)].y.tolist() == [40 + i for i in range(len(new_graphs))]
    with pytest.raises(ValueError, match=re.escape("Expected 'y' of shape [] per graph, as compiled, got [2]")):
        compiled.extend([graph.clone().update({"y": torch.ones(1, 2)}) for graph in new_graphs])


def test_labels_take_the_shape_that_tasks_have(graphs: list[Data]) -> None:
    several = [graph.clone().update({"y": torch.tensor([[1.0, float("nan"), i]])}) for i, graph in enumerate(graphs)]
    compiled = enfa.compile(several, enfa.NodeMarking(), enfa.Spec(1), progress=False)
    assert compiled[[4, 1]].y[:, 2].tolist() == [4, 1]
    several[6].y = torch.zeros(1, 2)
    with pytest.raises(ValueError, match=re.escape("graph 6: Expected 'y' of shape [1, 3], got [1, 2]")):
        enfa.compile(several, enfa.NodeMarking(), enfa.Spec(1), progress=False)
    without = [Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs]
    assert enfa.compile(without, enfa.NodeMarking(), enfa.Spec(1), progress=False)[:3].y is None


def test_a_refused_extension_leaves_the_dataset_alone(graphs: list[Data]) -> None:
    compiled = enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2, edge_attr=True), progress=False)
    before, key = compiled.cost(), compiled.key
    wide = Data(x=torch.zeros(2, 3, dtype=torch.long), edge_index=torch.zeros(2, 0, dtype=torch.long))
    wide.edge_attr = torch.zeros(0, 2, dtype=torch.long)
    with pytest.raises(ValueError, match="Expected 'x' with 2 columns of int64, as compiled, got 3"):
        compiled.extend([wide])
    with pytest.raises(ValueError, match="edge_attr"):
        compiled.extend([Data(x=wide.x[:, :2], edge_index=wide.edge_index)])
    assert compiled.cost() == before and compiled.key == key and len(compiled) == len(graphs)
