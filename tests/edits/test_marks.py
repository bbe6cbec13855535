"""Marks are numbers of Python's: no plan of a float64 model rounds them to float32."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.nn import GINConv

import enfa
from enfa.edits import GraphView
from enfa.graphs import check_graphs
from enfa.testing import random_graphs


class Thirds(enfa.Policy):
    marks = ((0.1,), (1 / 3,), (1 / 3 + 1e-12,))

    def bag(self, graph: GraphView) -> Any:
        for node in range(graph.num_nodes):
            yield enfa.Subgraph().mark_node(node, 1 + node % 2)


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = GINConv(nn.Linear(2, 4)), nn.Linear(4, 1)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = bag.propagate(self.conv, torch.cat([bag.x, bag.mark], 1)).tanh()
        return self.head(bag.pool(bag.pool(h, "sum"), "mean"))


def _graphs(dtype: torch.dtype) -> list[Data]:
    graphs = random_graphs(4, nodes=5, channels=1, seed=3)
    for graph in graphs:
        graph.x = graph.x.to(dtype)
    return graphs


def _written_out(model: Net, graph: Data) -> torch.Tensor:
    dtype, pooled = next(model.parameters()).dtype, []
    for node in range(graph.num_nodes):
        mark = torch.full((graph.num_nodes, 1), 0.1, dtype=dtype)
        mark[node] = Thirds.marks[1 + node % 2][0]
        pooled.append(model.conv(torch.cat([graph.x.to(dtype), mark], 1), graph.edge_index).tanh().sum(0))
    return model.head(torch.stack(pooled).mean(0))


@pytest.mark.parametrize("features", [torch.float32, torch.float64])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_marks_are_in_the_precision_of_the_model(features: torch.dtype, dtype: torch.dtype, tmp_path: Path) -> None:
    graphs, model = _graphs(features), Net().to(dtype)
    expected = torch.stack([_written_out(model, graph) for graph in graphs])
    compiled = enfa.compile(graphs[:2], Thirds(), model, progress=False)
    compiled.extend(graphs[2:])
    compiled.save(tmp_path / "one.enfa")
    found = [model(enfa.make_plan(graphs, Thirds(), model, kind)) for kind in ("full", "ego", "distinct")]
    found += [model(compiled[:]), model(enfa.load_compiled(tmp_path / "one.enfa")[:])]
    tolerance = 1e-6 if dtype == torch.float32 else 1e-13
    for out in found:
        assert out.dtype == dtype
        torch.testing.assert_close(out, expected, rtol=tolerance, atol=tolerance)
    if dtype == torch.float64:
        enfa.testing.assert_same_as_full(model, Thirds(), graphs)


def test_a_program_has_marks_that_go_together_with_the_features() -> None:
    model = Net()
    for dtype in (torch.float32, torch.float64):
        graphs = _graphs(dtype)
        program = enfa.trace(model, graphs, Thirds())
        compiled = enfa.compile(graphs[:2], Thirds(), program, progress=False)
        compiled.extend(graphs[2:])
        for plan in (enfa.make_plan(graphs, Thirds(), program), compiled[:]):
            assert plan.mark_rows.dtype == plan.x_rows.dtype == dtype


def test_marks_that_float32_holds_are_kept_in_it() -> None:
    graphs = check_graphs(_graphs(torch.float64))
    assert enfa.NodeMarking().edits(graphs).marks.dtype == np.float32
    assert Thirds().edits(graphs).marks.dtype == np.float64
