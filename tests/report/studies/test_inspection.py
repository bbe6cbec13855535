from __future__ import annotations

import pytest
import torch
from matplotlib.axes import Axes

import enfa
from enfa.plan.rows import ending
from enfa.report.pictures.layout import hop_distances
from enfa.report.pictures.rows import draw_rows
from enfa.report.pictures.sharing import sharing_of
from enfa.report.program import ds_program
from enfa.report.studies.inspection import inspect_bags
from enfa.report.studies.storage import measure_storage
from enfa.testing import degenerate_graphs, random_graphs


@pytest.mark.parametrize("policy", [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion()], ids=repr)
def test_figures_are_those_of_the_plans(policy: enfa.Policy) -> None:
    graphs = random_graphs(9, 9, channels=[3, 2], edge_channels=[3, 2])
    found, program = inspect_bags(graphs, policy, 3, batch_size=100), ds_program(3, edges=True)
    full, distinct = (enfa.make_plan(graphs, policy, program, kind) for kind in ("full", "distinct"))
    assert found["conventional"] == full.cost().rows and found["distinct"] == distinct.cost().rows
    assert found["messages"] == {"conventional": sum(full.cost().edges), "distinct": sum(distinct.cost().edges)}
    shared = [sharing_of(graph, policy, program) for graph in graphs]
    reached = [((s.rows != s.base[:, None]) & (s.rows >= 0)).sum((1, 2)) for s in shared]
    assert found["affected"] == sum(reached)[1:].tolist()
    if isinstance(policy, enfa.NodeMarking):
        hops = [hop_distances(graph.num_nodes, graph.edge_index.numpy()) for graph in graphs]
        assert found["rows_within_hops"] == [sum(int(((h <= i) & (h < len(h))).sum()) for h in hops) for i in (1, 2, 3)]
    rows = zip(found["rows_within_hops"], found["affected"], found["conventional"])
    assert all(affected <= near <= whole for near, affected, whole in rows)
    assert found["speedup"]["distinct"] == pytest.approx(found["sharing"])  # one batch of everything
    # as published: ego nets of one hop more, and the unedited graphs
    beyond = inspect_bags(graphs, policy, 4)["rows_within_hops"][3] + sum(graph.num_nodes for graph in graphs)
    assert found["speedup"]["ego"] == pytest.approx(full.num_pairs / beyond)
    assert found["subgraphs"] == full.num_subgraphs


def test_rows_are_those_that_can_be_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a model's dataset would end sharing early: dense graphs, whose nodes all differ."""
    monkeypatch.setattr(ending, "SMALLEST", 1)
    graphs = random_graphs(3, 9, seed=2, degree=8.0)
    for graph in graphs:
        graph.x = torch.randn_like(graph.x)
    program = ds_program(4, edges=False)
    assert enfa.compile(graphs, enfa.NodeMarking(), program, progress=False).program.unshared is not None
    found = inspect_bags(graphs, enfa.NodeMarking(), 4)
    assert found["distinct"] == enfa.make_plan(graphs, enfa.NodeMarking(), program).cost().rows
    assert len(found["affected"]) == 4
    assert [entry.get("layers") for entry in measure_storage(graphs, enfa.NodeMarking(), [2, 4])] == [None, 2, 2, 4, 4]


def test_speed_up_in_batches_is_less_than_in_the_whole() -> None:
    graphs = random_graphs(40, 9, channels=[2])
    found = inspect_bags(graphs, enfa.NodeMarking(), 2, batch_size=4)
    assert 1 < found["speedup"]["distinct"] < found["sharing"]
    assert found["speedup"]["batch_size"] == 4


@pytest.mark.parametrize("name", degenerate_graphs())
def test_degenerate_graphs_are_drawn_too(name: str) -> None:
    found = inspect_bags([degenerate_graphs()[name]], enfa.NodeDeletion(), 2)
    assert len(draw_rows(found, name).axes[0].lines) == 4


def test_the_picture_has_a_log_scale() -> None:
    found = inspect_bags(random_graphs(5, 6), enfa.NodeMarking(), 3)
    axes: Axes = draw_rows(found, "five").axes[0]
    assert axes.get_yscale() == "log"
    assert [list(line.get_ydata()) for line in axes.lines][3] == found["distinct"]
