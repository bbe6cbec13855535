"""Datasets compiled for models of one's own."""

from __future__ import annotations

import copy
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch
from bag_models import MODELS, ROOTED, Egos, Molecules, Net
from program_cases import CASES, Case, graphs_of
from torch import nn

import enfa
from enfa.batch.dataset import CompiledDataset
from enfa.batch.positions import positions
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.nn.bag import Bag, make_plan
from enfa.testing import degenerate_graphs, random_graphs


def _graphs(model: type[nn.Module]) -> list:
    channels, edges = ([3, 2], [3, 2]) if model is Molecules else (3, None)
    graphs = random_graphs(9, 8, seed=1, channels=channels, edge_channels=edges)
    return graphs + list(degenerate_graphs(channels, edges).values())


@pytest.mark.parametrize("pairs", [150, 10**9])
@pytest.mark.parametrize("kind", [*MODELS, *ROOTED, Egos], ids=lambda k: k.__name__)
def test_slices_give_what_full_plans_give(kind: type[nn.Module], pairs: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled in one piece, and in chunks that are merged."""
    monkeypatch.setattr(enfa.batch.chunks, "_MOST", pairs)
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


def test_another_model_is_refused_by_both_names() -> None:
    graphs = random_graphs(3, 6, seed=1)
    bag = make_plan(graphs, enfa.NodeMarking(), Net())
    other = next(kind for kind in MODELS if kind.__name__ == "Context")()
    with pytest.raises(ValueError, match=r"asks for a step that its plan does not hold: nodes, across 1(.|\n)*propagate 0"):
        other(bag)


@pytest.mark.parametrize("plan", ["full", "ego"])
def test_other_kinds_are_planned_anew(plan: str) -> None:
    graphs, model = random_graphs(4, 6, seed=1), Net().double().eval()
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model, kind=plan, progress=False)
    assert compiled[[1]].kind == plan and len(compiled[-1:].tables) == 7
    full = make_plan([graphs[3], graphs[1]], enfa.NodeMarking(), model, "full")
    torch.testing.assert_close(model(compiled[[3, 1]]), model(full), rtol=1e-10, atol=1e-10)


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def compiled(case: Case) -> CompiledDataset:
    return case.compiled(graphs_of(case))


def test_rows_per_graph_are_those_of_each_graphs_own_plan(case: Case, compiled: CompiledDataset) -> None:
    found = compiled.rows_per_graph()
    alone = np.array([sum(compiled[g].cost().rows) for g in range(len(compiled))])
    if case.anew and case.kind != "full":
        assert (found >= alone).all()
    else:
        np.testing.assert_array_equal(found, alone)
    batch = [5, 3, 11]
    assert max(alone[batch]) <= sum(compiled[batch].cost().rows) <= sum(found[batch])


def test_what_it_says_of_itself(case: Case, compiled: CompiledDataset) -> None:
    edits = case.policy.edits(check_graphs(graphs_of(case)))
    assert len(compiled) == 16 and compiled.kind == case.kind
    assert compiled.num_subgraphs == edits.num_subgraphs == compiled[:].num_subgraphs
    assert compiled.num_pairs == edits.sizes(check_graphs(graphs_of(case))).sum() == compiled[:].num_pairs
    assert compiled.cost().rows == compiled[:].cost().rows and compiled.cost().bytes > 0
    lines = repr(compiled).splitlines()
    assert len(lines) == 3 and lines[0].startswith(f"CompiledDataset({case.kind}, 16 graphs, ")
    assert lines[2] == "  rows:  planned batch by batch" if case.anew else lines[2].startswith("  rows:  ")
    assert len(repr(compiled[[1, 2]]).splitlines()) == 3


def test_every_way_to_choose_graphs() -> None:
    compiled = CASES["ds"].compiled(graphs_of(CASES["ds"]))
    mask = np.zeros(len(compiled), bool)
    mask[[2, 5]] = True
    for chosen in ([2, 5], np.array([2, 5]), torch.tensor([2, 5]), mask, torch.from_numpy(mask), slice(2, 6, 3)):
        plan = compiled[chosen]
        assert plan.graph_ids.tolist() == plan.y.tolist() == plan.graph_attr["weight"].tolist() == [2, 5]
    assert compiled[7].graph_ids.tolist() == [7]
    assert compiled[-1].graph_ids.tolist() == [15] and compiled[[-16, 3, -2]].graph_ids.tolist() == [0, 3, 14]


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ([0, 99], IndexError, "Expected graphs 0 to 15, got 0 to 99"),
        ([-17], IndexError, "Expected graphs 0 to 15, got -17 to -17"),
        ([15, -1], ValueError, "at most once"),
        ([0.5], IndexError, "float64"),
        ([[1, 2]], IndexError, "shape [1, 2]"),
        ([True, False], IndexError, "Expected a mask of shape [16], got [2]"),
    ],
)
def test_wrong_choices(chosen: list, error: type, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        positions(chosen, 16)


@pytest.mark.parametrize("name", ["ds", "ds, edges", "full, kept nodes", "anew"])
def test_draws_are_parts_of_the_compiled_bags(name: str, tmp_path: Path) -> None:
    """Of a file, too, whose policy is known by its name alone; and as the full plan of what was drawn has them."""
    case, graphs = CASES[name], graphs_of(CASES[name])
    model, draw = case.made().eval(), enfa.Subsample(case.policy, count=2, seed=5)
    made = case.compiled(graphs)
    made.save(tmp_path / "x.enfa")
    full = enfa.compile(graphs, case.policy, model, progress=False, kind="full")
    for compiled in (made, enfa.load_compiled(tmp_path / "x.enfa")):
        for batch in enfa.DataLoader(compiled, 6, shuffle=True, seed=1, draw=draw):
            expected = full.plan(batch.graph_ids, draw, 0)
            assert batch.num_subgraphs == expected.num_subgraphs <= 2 * batch.num_graphs
            torch.testing.assert_close(model(batch), model(expected), rtol=1e-10, atol=1e-10)
        with pytest.raises(ValueError, match="Expected to draw from the compiled bags, those of"):
            enfa.DataLoader(compiled, draw=enfa.Subsample(enfa.NodeDeletion(isolate=True), count=1))
        with pytest.raises(TypeError, match=r"Expected draw to be an enfa.Subsample, got NodeMarking\(distances=None\)"):
            enfa.DataLoader(compiled, draw=enfa.NodeMarking())
    score = np.arange(made.num_subgraphs, dtype=float)
    plan = made.plan([3, 1], enfa.Subsample(case.policy, count=1, greedy=True), 0, score)
    last = edits_by(case.policy, check_graphs(graphs)).sub_ptr[[4, 2]] - 1  # the subgraphs with the highest scores
    every, edits = full.graphs
    assert plan.num_pairs == edits.sizes(every)[last].sum()


def test_draws_that_would_need_whole_bags_are_refused() -> None:
    case = CASES["dss"]
    with pytest.raises(ValueError, match="Expected whole bags"):
        enfa.DataLoader(case.compiled(graphs_of(case)), draw=enfa.Subsample(case.policy, count=1))


def test_several_threads_slice_one_dataset() -> None:
    compiled = CASES["dss"].compiled(graphs_of(CASES["dss"]))

    def content(chosen: list[int]) -> list[list]:
        return [tensor.tolist() for tensor in compiled[chosen].tensors()]

    chosen = [[i % 16, (i + 7) % 16, (i + 11) % 16] for i in range(20)]
    expected, before = [content(some) for some in chosen], sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as threads:
            for turn in range(3):
                order = np.random.default_rng(turn).permutation(len(chosen))
                for i, found in zip(order, threads.map(lambda i: content(chosen[i]), order)):
                    assert found == expected[i]
    finally:
        sys.setswitchinterval(before)


def test_attributes_of_graphs_ride_along(case: Case, compiled: CompiledDataset) -> None:
    graphs = graphs_of(case)
    for plan in (compiled[[4, 1]], make_plan([graphs[4], graphs[1]], case.policy, case.made())):
        assert plan.graph_attr["weight"].tolist() == [4, 1] and plan.graph_attr["weight"].dtype == plan.mark_rows.dtype
        assert plan.graph_attr["several"].shape == (2, 2, 3) and plan.graph_attr["several"][:, 1, 2].tolist() == [4, 1]
        assert plan.graph_attr.keys() == {"weight", "several"}
        moved = plan.to("meta")
        assert moved.graph_attr["several"].is_meta and not plan.graph_attr["several"].is_meta


def test_attributes_with_a_gradient() -> None:
    graphs, case = random_graphs(3, 5, seed=1, edge_channels=2), CASES["ds, degrees"]
    for graph in graphs:
        graph.weight = torch.ones(1, dtype=torch.float64, requires_grad=True)
    case.made()(make_plan(graphs, case.policy, case.made())).sum().backward()
    assert [graph.weight.grad.tolist() for graph in graphs] == [[2.0]] * 3
    with pytest.raises(ValueError, match="Expected 'weight' without a gradient to compile"):
        case.compiled(graphs)


def test_labels_may_be_set_one_for_each_graph(tmp_path: Path) -> None:
    compiled = enfa.compile(random_graphs(6, 5, channels=3), enfa.NodeMarking(), Net(1), progress=False)
    compiled.y = torch.arange(6)
    assert compiled[[4, 2]].y.tolist() == [4, 2]
    for wrong, error, message in (
        (torch.arange(7), ValueError, r"a label for each of 6 graphs, got a tensor of shape \[7\]"),
        (torch.tensor(1), ValueError, "a label for each of 6 graphs"),
        ([0, 1, 0, 1, 0, 1], TypeError, "labels to be a tensor, got list"),
    ):
        with pytest.raises(error, match=message):
            compiled.y = wrong  # type: ignore[assignment]
    compiled.save(tmp_path / "six.enfa")
    assert enfa.load_compiled(tmp_path / "six.enfa").y.tolist() == list(range(6))


def test_labels_of_nodes_may_be_set_one_for_each_node() -> None:
    graphs = random_graphs(6, 5, channels=3)
    for graph in graphs:
        graph.y = torch.zeros(graph.num_nodes)
    told = "graph 2: .* labels of nodes are set as node_y of the compiled dataset, of graphs without 'y'"
    with pytest.raises(ValueError, match=told):
        enfa.compile(graphs, enfa.NodeMarking(), Net(1), progress=False)
    for graph in graphs:
        del graph.y
    compiled, sizes = enfa.compile(graphs, enfa.NodeMarking(), Net(1), progress=False), [graph.num_nodes for graph in graphs]
    compiled.node_y = torch.arange(sum(sizes))
    assert compiled[[4, 2]].y.tolist() == [*range(sum(sizes[:4]), sum(sizes[:5])), *range(sum(sizes[:2]), sum(sizes[:3]))]
    assert torch.equal(compiled.first_layers(1)[[4]].y, compiled[[4]].y)
    for wrong, error in (
        (torch.arange(sum(sizes) + 1), ValueError),
        (torch.arange(6), ValueError),
        ([0] * sum(sizes), TypeError),
    ):
        with pytest.raises(error, match=rf"Expected (a label for each of {sum(sizes)} nodes|labels to be a tensor), got"):
            compiled.node_y = wrong  # type: ignore[assignment]
