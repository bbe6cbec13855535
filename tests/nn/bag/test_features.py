"""Floats and categories side by side, and what belongs to graphs spread to their pairs, on every plan."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import MLP, GINConv

import enfa
from enfa.testing import random_graphs


class Both(nn.Module):
    """Positional encodings beside kinds of atoms; what was pooled, and a temperature, go back to the pairs."""

    def __init__(self) -> None:
        super().__init__()
        self.kind, self.start, self.head = nn.Embedding(5, 4), nn.Linear(3 + 1 + 4, 8), nn.Linear(8, 2)
        self.convs = nn.ModuleList(GINConv(MLP([width, 8, 8])) for width in (8, 9))

    def forward(self, bag: enfa.Bag) -> Tensor:
        h = self.start(torch.cat([bag.x, bag.mark, self.kind(bag.x_cat[:, 0])], 1))
        h = bag.propagate(self.convs[0], h).relu()
        h = h + bag.spread(bag.pool(bag.pool(h, "mean"), "max"))
        h = torch.cat([h, bag.spread(bag.graph_attr["temperature"][:, None])], 1)
        return self.head(bag.pool(bag.pool(bag.propagate(self.convs[1], h)), "mean"))


def _graphs(count: int = 5, seed: int = 2) -> list[Data]:
    graphs, draw = random_graphs(count, 7, seed=seed), torch.Generator().manual_seed(seed)
    graphs = [*graphs, *(graph.clone() for graph in graphs[:2])]
    for number, graph in enumerate(graphs):
        graph.x_cat = torch.randint(0, 5, (graph.num_nodes, 1), generator=draw)
        graph.temperature = 0.5 * number
    graphs[-1].x_cat = graphs[1].x_cat  # the same graph as another, but for the temperature
    return graphs


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.EdgeDeletion(), enfa.EgoNets(2)], ids=repr)
@pytest.mark.parametrize("kind", ["distinct", "ego"])
def test_same_as_full(policy: enfa.Policy, kind: str) -> None:
    torch.manual_seed(0)
    model, found = Both().double(), []
    model.start = nn.Linear(3 + policy.edits(enfa.graphs.check_graphs(_graphs())).marks.shape[1] + 4, 8).double()
    for plan in (enfa.make_plan(_graphs(), policy, model, kind), enfa.make_plan(_graphs(), policy, model, "full")):
        model.zero_grad()
        out = model(plan)
        out.square().sum().backward()
        found.append([out.detach(), *(p.grad.clone() for p in model.parameters() if p.grad is not None)])
    for a, b in zip(*found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-10)


def test_as_if_categories_were_floats() -> None:
    """The independent reference: a model without categories, on one-hot columns."""
    torch.manual_seed(0)
    model = Both().double().eval()
    plain = _graphs()
    for graph in plain:
        graph.x = torch.cat([graph.x.double(), nn.functional.one_hot(graph.x_cat[:, 0], 5).double()], 1)
        del graph.x_cat

    class OneHot(Both):
        def forward(self, bag: enfa.Bag) -> Tensor:
            kinds = bag.x[:, 3:] @ self.kind.weight
            h = self.start(torch.cat([bag.x[:, :3], bag.mark, kinds], 1))
            h = bag.propagate(self.convs[0], h).relu()
            h = h + bag.spread(bag.pool(bag.pool(h, "mean"), "max"))
            h = torch.cat([h, bag.spread(bag.graph_attr["temperature"][:, None])], 1)
            return self.head(bag.pool(bag.pool(bag.propagate(self.convs[1], h)), "mean"))

    other = OneHot().double().eval()
    other.load_state_dict(model.state_dict())
    expected = other(enfa.make_plan(plain, enfa.NodeMarking(), other, "full"))
    torch.testing.assert_close(model(enfa.make_plan(_graphs(), enfa.NodeMarking(), model)), expected, rtol=1e-10, atol=1e-10)


def test_compiled_extended_and_stored(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model, graphs = Both().double().eval(), _graphs()
    compiled = enfa.compile(graphs[:4], enfa.NodeMarking(), model, progress=False)
    compiled.extend(graphs[4:])
    compiled.save(tmp_path / "both.enfa")
    chosen = [6, 1, 3, 4]
    expected = model(enfa.make_plan([graphs[i] for i in chosen], enfa.NodeMarking(), model, "full"))
    for dataset in (compiled, enfa.load_compiled(tmp_path / "both.enfa")):
        torch.testing.assert_close(model(dataset[chosen]), expected, rtol=1e-10, atol=1e-10)
        assert dataset[chosen].categories == (4,)
    with pytest.raises(ValueError, match="Expected graphs with 1 columns of 'x_cat', as compiled, got 0"):
        new = random_graphs(1, channels=4)
        new[0].temperature = 1.0
        compiled.extend(new)


def test_what_is_refused() -> None:
    graphs, model = _graphs(), Both()
    with pytest.raises(ValueError, match="2 columns of 'x_cat' beside them, which this model does not read"):
        wide = _graphs()
        for graph in wide:
            graph.x_cat = graph.x_cat.expand(-1, 2)
        enfa.make_plan(wide, enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 2))
    with pytest.raises(ValueError, match="Expected graphs with 'x_cat' beside floats in 'x', because the model reads it"):
        enfa.make_plan(random_graphs(2, 5), enfa.NodeMarking(), model)
    for change, said in (
        ({"x_cat": None}, "graph 1: Expected 'x_cat' in all graphs or in none, but graph 0 has it"),
        ({"x_cat": torch.zeros(graphs[1].num_nodes, 2, dtype=torch.long)}, "graph 1: Expected 'x_cat' with 1 columns, as in"),
        ({"x_cat": torch.zeros(graphs[1].num_nodes, 1)}, "graph 1: Expected floats in 'x' and integers in 'x_cat'"),
        ({"x": torch.zeros(graphs[1].num_nodes, 3).long()}, "graph 1: Expected floats in 'x' and integers in 'x_cat'"),
        ({"x_cat": graphs[1].x_cat + 2**24}, r"graph 1: Expected 'x_cat' below 2\^24"),
    ):
        wrong = _graphs()
        for name, value in change.items():
            wrong[1][name] = value
        with pytest.raises(ValueError, match=said):
            enfa.make_plan(wrong, enfa.NodeMarking(), model)
    graphs[0].x.requires_grad_()
    with pytest.raises(ValueError, match="Expected 'x' without a gradient where 'x_cat' stands beside it"):
        enfa.make_plan(graphs, enfa.NodeMarking(), model)
    bag = enfa.make_plan(_graphs(), enfa.NodeMarking(), Both())
    with pytest.raises(ValueError, match=r"Expected a tensor of 7 graphs to spread, got \[3, 2\]"):
        bag.spread(torch.ones(3, 2))
    shared = enfa.make_plan(random_graphs(3, 5), enfa.NodeMarking(), enfa.DSGNN(3, 4, 2, 2))
    with pytest.raises(ValueError, match="The model tells graphs apart, and its plan shares rows between them"):
        shared.spread(torch.ones(3, 2))
