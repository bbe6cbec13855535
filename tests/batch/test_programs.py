"""Datasets compiled for models of one's own."""

from __future__ import annotations

import copy

import pytest
import torch
from bag_models import MODELS, ROOTED, Molecules, Net
from torch import nn

import enfa
from enfa.nn.bag import Bag, make_plan
from enfa.testing import degenerate_graphs, random_graphs


def _graphs(model: type[nn.Module]) -> list:
    channels, edges = ([3, 2], [3, 2]) if model is Molecules else (3, None)
    graphs = random_graphs(9, 8, seed=1, channels=channels, edge_channels=edges)
    return graphs + list(degenerate_graphs(channels, edges).values())


@pytest.mark.parametrize("pairs", [150, 10**9])
@pytest.mark.parametrize("kind", [*MODELS, *ROOTED], ids=lambda k: k.__name__)
def test_slices_give_what_full_plans_give(kind: type[nn.Module], pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled in one piece, and in chunks that are merged."""
    monkeypatch.setattr(enfa.batch.rows, "_PAIRS", pairs)
    graphs, policy = _graphs(kind), enfa.NodeMarking()
    torch.manual_seed(0)
    model = kind().double()
    compiled = enfa.compile(graphs, policy, model, progress=False)
    assert compiled.cost().rows == compiled[:].cost().rows  # what counts nothing is not there
    for chosen in ([0], [3, 1], [5, 17, 2, 9], list(range(len(graphs)))[::-1]):
        plan = compiled[chosen]
        full = make_plan([graphs[g] for g in chosen], policy, model, "full")
        full.graph_ids = plan.graph_ids  # dropout's masks depend on the place of a graph in its dataset
        for train in (True, False):
            found, expected = (_output(model, bag, train) for bag in (plan, full))
            torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-10)


def _output(model: nn.Module, bag: Bag, train: bool) -> torch.Tensor:
    torch.manual_seed(1)
    with torch.no_grad():
        return copy.deepcopy(model).train(train)(bag)


def test_loaders_take_them() -> None:
    graphs = random_graphs(11, 7, seed=1)
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([i])
    model = Net().eval()
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
    expected = model(compiled[:])
    assert len(compiled) == 11 and len(repr(compiled).splitlines()) == 3
    seen = []
    for batch in enfa.DataLoader(compiled, 4, shuffle=True, seed=3, max_rows=400):
        torch.testing.assert_close(model(batch), expected[batch.y], rtol=1e-4, atol=1e-5)
        assert sum(batch.cost().rows) <= 400 or batch.num_graphs == 1
        seen += batch.y.tolist()
    assert sorted(seen) == list(range(11))
    with pytest.raises(ValueError, match="Expected no draw for a model of one's own"):
        enfa.DataLoader(compiled, 4, draw=enfa.Subsample(enfa.NodeMarking(), count=1))


def test_another_model_is_refused_by_both_names() -> None:
    graphs = random_graphs(3, 6, seed=1)
    bag = make_plan(graphs, enfa.NodeMarking(), Net())
    other = next(kind for kind in MODELS if kind.__name__ == "Context")()
    with pytest.raises(ValueError, match=r"asks for a step that its plan does not hold: nodes, across 1(.|\n)*propagate 0"):
        other(bag)


def test_what_is_not_there_for_models_of_ones_own() -> None:
    graphs = random_graphs(3, 6, seed=1)
    with pytest.raises(ValueError, match="Expected no cache for a model of one's own"):
        enfa.compile(graphs, enfa.NodeMarking(), Net(), cache="folder")


@pytest.mark.parametrize("plan", ["full", "ego"])
def test_other_kinds_are_planned_anew(plan: str) -> None:
    graphs, model = random_graphs(4, 6, seed=1), Net().double().eval()
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, kind=plan, progress=False)
    assert compiled[[1]].kind == plan and len(compiled[-1:].tables) == 7
    full = make_plan([graphs[3], graphs[1]], enfa.NodeMarking(), model, "full")
    torch.testing.assert_close(model(compiled[[3, 1]]), model(full), rtol=1e-10, atol=1e-10)
