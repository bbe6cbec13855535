from pathlib import Path

import pytest
import torch
from programs import layers
from torch_geometric.data import Data

import enfa
from enfa.graphs.labels import added_labels, labels
from enfa.testing import random_graphs


def _graphs(*ys: object) -> list[Data]:
    graphs = random_graphs(len(ys), 5, seed=1)
    for graph, y in zip(graphs, ys):
        graph.y = y
    return graphs


def test_all_graphs_have_labels_or_none() -> None:
    one = torch.tensor([1])
    assert labels(_graphs(None, None)) is None
    assert labels(_graphs(one, 2, 3.5)).tolist() == [1.0, 2.0, 3.5]
    for given, message in (
        ((one, one, None, one, None), "Expected 'y' in all graphs or in none, got it in graph 0 and none in graph 2"),
        ((None, one), "Expected 'y' in all graphs or in none, got it in graph 1 and none in graph 0"),
    ):
        graphs = _graphs(*given)
        for refuse in (
            labels,
            lambda graphs: enfa.compile(graphs, enfa.NodeMarking(), layers(1), progress=False),
            lambda graphs: enfa.make_plan(graphs, enfa.NodeMarking(), layers(1)),
            lambda graphs: added_labels(torch.tensor([3, 4]), 2, graphs),
            lambda graphs: added_labels(None, 2, graphs),
        ):
            with pytest.raises(ValueError, match=f"^{message}$"):
                refuse(graphs)


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
def test_plans_carry_the_labels_of_their_graphs(kind: str) -> None:
    def y(*ys: object) -> torch.Tensor | None:
        return enfa.make_plan(_graphs(*ys), enfa.NodeMarking(), layers(1), kind).y

    assert y(None, None) is None
    assert y(torch.tensor([4]), torch.tensor([5])).tolist() == [4, 5]
    assert y(torch.tensor([[4.0, 1.0]]), torch.tensor([[5.0, 2.0]])).tolist() == [[4.0, 1.0], [5.0, 2.0]]


@pytest.mark.parametrize("ys", [(torch.arange(5), torch.arange(3)), ("one", "two"), ({}, {})])
def test_labels_that_are_not_those_of_graphs_do_not_keep_a_plan_from_being_made(ys: tuple) -> None:
    """Node-level labels, say, which ``root_nodes`` finds; a compiled dataset, which would store them, refuses them."""
    graphs = _graphs(*ys)
    assert enfa.make_plan(graphs, enfa.NodeMarking(), layers(1)).y is None
    if isinstance(ys[0], torch.Tensor):
        with pytest.raises(ValueError, match=r"graph 1: Expected 'y' of shape \[1, 5\], got \[1, 3\]"):
            enfa.compile(graphs, enfa.NodeMarking(), layers(1), progress=False)


@pytest.mark.parametrize("dtype", [torch.complex64, torch.float8_e4m3fn, "sparse"])
def test_labels_that_could_not_be_read_from_a_file_are_refused_before_it_is_written(dtype: torch.dtype | str) -> None:
    y = torch.ones(1).to_sparse() if isinstance(dtype, str) else torch.ones(1).to(dtype)
    for refuse in (labels, lambda graphs: enfa.compile(graphs, enfa.NodeMarking(), layers(1), progress=False)):
        with pytest.raises(TypeError, match="graph 1: Expected 'y' of a type that files hold, got a tensor of torch"):
            refuse(_graphs(1, y))


def test_labels_that_were_set_are_refused_where_a_file_could_not_be_read(tmp_path: Path) -> None:
    compiled = enfa.compile(_graphs(1, 2), enfa.NodeMarking(), layers(1), progress=False)
    compiled.y = torch.ones(2, dtype=torch.complex64)
    with pytest.raises(TypeError, match=r"Expected labels of a type that files hold, got a tensor of torch\.complex64"):
        compiled.save(tmp_path / "one.enfa")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_labels_become_signed_ones_that_hold_them(dtype: torch.dtype, tmp_path: Path) -> None:
    most = min(torch.iinfo(dtype).max, 2**63 - 1)
    graphs = _graphs(torch.tensor([1]).to(dtype), torch.tensor([most]).to(dtype))
    for graph in graphs:
        graph.level = graph.y
    compiled = enfa.compile(graphs, enfa.NodeMarking(), layers(1), tmp_path, progress=False)
    assert compiled.y.flatten().tolist() == compiled.graph_attr["level"].tolist() == [1, most]
    assert compiled[[1]].graph_attr["level"].tolist() == [most]


def test_labels_beyond_signed_integers_are_refused() -> None:
    y = torch.tensor([-1]).view(torch.uint64)
    with pytest.raises(TypeError, match=r"graph 1: Expected 'y' of a type that files hold, got a tensor of torch\.uint64"):
        labels(_graphs(1, y))


def test_axes_of_labels_are_kept() -> None:
    graphs = _graphs(torch.ones(1, 3, 2), torch.zeros(1, 3, 2))
    assert labels(graphs).shape == (2, 3, 2)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), layers(1), progress=False)
    assert compiled[[1]].y.shape == (1, 3, 2) and enfa.make_plan(graphs, enfa.NodeMarking(), layers(1)).y.shape == (2, 3, 2)
    with pytest.raises(ValueError, match=r"graph 1: Expected 'y' of shape \[1, 2\], got \[2, 2\]$"):
        labels(_graphs(torch.ones(1, 2), torch.ones(2, 2)))
    with pytest.raises(ValueError, match=r"graph 0: Expected 'y' of shape \[1, 2\], got \[5, 2\]; labels of nodes are set as"):
        labels([graph for graph in _graphs(*[torch.ones(5, 2)] * 3) if graph.num_nodes == 5])


def test_bfloat16_labels_become_float32_which_holds_them(tmp_path: Path) -> None:
    y = torch.tensor([1.5], dtype=torch.bfloat16)
    compiled = enfa.compile(_graphs(y, y), enfa.NodeMarking(), layers(1), tmp_path, progress=False)
    assert compiled.y.dtype == torch.float32 and compiled.y.tolist() == [1.5, 1.5]


def test_added_labels_fill_up_what_is_unknown() -> None:
    old = torch.tensor([3, 4])
    assert added_labels(old, 2, _graphs(None, None)).tolist() == [3, 4, -1, -1]
    assert added_labels(old, 2, _graphs(7, 8)).tolist() == [3, 4, 7, 8]
    assert added_labels(old, 2, _graphs(7.0, 8.0)).tolist() == [3, 4, 7, 8]
    assert added_labels(None, 2, _graphs(None)) is None
    assert added_labels(None, 2, _graphs(7, 8)).tolist() == [-1, -1, 7, 8]
    found = added_labels(None, 1, _graphs(torch.tensor([[0.5, 1.0]])))
    assert found.isnan().tolist() == [[True, True], [False, False]]


@pytest.mark.parametrize("y", [1.5, float("nan")])
def test_added_labels_are_not_rounded(y: float) -> None:
    message = "Expected 'y' to hold integers, as compiled, got "
    with pytest.raises(ValueError, match=message):
        added_labels(torch.tensor([3, 4]), 2, _graphs(2.0, y))


@pytest.mark.parametrize("bad", ["toxic", [[1, 2], [3]], {"a": 1}])
def test_labels_that_are_no_numbers(bad: object) -> None:
    with pytest.raises(TypeError, match=r"^graph 1: Expected 'y' to be a number, a tensor or a list of numbers, got "):
        labels(_graphs(torch.tensor([1]), bad))
