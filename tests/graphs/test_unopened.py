"""Graphs of a list that was not looked into are to a plan what they are one by one."""

import copy
import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import enfa
from enfa.datasets import Benchmark
from enfa.datasets.assemble import assemble
from enfa.datasets.flat import FlatGraphs
from enfa.graphs import check_graphs
from enfa.graphs.attributes import graph_attributes
from enfa.graphs.labels import labels
from enfa.graphs.unopened import unopened
from enfa.plan.gradients import needing


def arrays(kind: str, edge: str | None) -> FlatGraphs:
    rng, sizes = np.random.default_rng(3), np.array([4, 1, 6, 3, 5])
    counts = np.array([5, 0, 9, 2, 7])
    size = np.repeat(sizes, counts)[:, None]
    made = {
        "float": lambda rows: rng.choice([-0.0, 0.0, 1.5, -2.0], (rows, 2)),
        "int": lambda rows: rng.integers(0, 3, (rows, 2)),
    }
    attr = None if edge is None else made[edge](counts.sum())
    return FlatGraphs("toy", sizes, counts, rng.integers(0, 2**40, (counts.sum(), 2)) % size, made[kind](sizes.sum()), attr)


def toy(kind: str = "int", edge: str | None = "int", y: Any = (0, 1, 1, 0, 1)) -> Benchmark:
    return assemble("toy", arrays(kind, edge), np.array(y))


@pytest.mark.parametrize("edge", [None, "int", "float"])
@pytest.mark.parametrize("kind", ["int", "float"])
def test_they_are_checked_as_one_by_one(kind: str, edge: str | None) -> None:
    data = toy(kind, edge)
    assert unopened(data.graphs) is not None
    found, expected = check_graphs(data.graphs, 7), check_graphs(list(toy(kind, edge).graphs), 7)
    for field in fields(expected):
        one, other = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            assert one.dtype == other.dtype and np.array_equal(one, other), field.name
            assert other.dtype.kind != "f" or np.array_equal(np.signbit(one), np.signbit(other)), field.name
        else:
            assert one == other, field.name
    assert needing(data.graphs) == [] and graph_attributes(data.graphs) == {}
    assert unopened(data.graphs) is not None  # all of it without looking at one


@pytest.mark.parametrize("y", [[0, 1, 1, 0, 1], [[0.0], [1], [1], [0], [1]], [[0.0, 1]] * 5, [0.5, 1.5, 2, 2, 1]])
def test_labels(y: Any) -> None:
    data = toy(y=y)
    found, expected = labels(data.graphs), labels(list(toy(y=y).graphs))
    assert found is not None and expected is not None
    assert found.dtype == expected.dtype and torch.equal(found, expected)
    assert np.array_equal(data.labels, replace(data, graphs=list(toy(y=y).graphs)).labels)


def test_what_is_compiled_is_found_again_by_graphs_one_by_one(tmp_path: Path) -> None:
    data, policy = toy(), enfa.NodeMarking()
    model = enfa.DSGNN([3, 3], 8, 2, 2, conv="gine", edge_channels=[3, 3])
    compiled = enfa.compile(data.graphs, policy, model, tmp_path, progress=False)
    assert unopened(data.graphs) is not None
    again = enfa.compile(list(data.graphs), policy, model, tmp_path, progress=False)
    assert unopened(data.graphs) is None
    assert len(list(tmp_path.iterdir())) == 1 and again.key == compiled.key


def test_changed_graphs_count() -> None:
    data = toy()
    data.graphs[2].x = data.graphs[2].x + 1
    assert unopened(data.graphs) is None
    assert np.array_equal(check_graphs(data.graphs).x, check_graphs(list(data.graphs)).x)
    assert not np.array_equal(check_graphs(data.graphs).x, check_graphs(toy().graphs).x)
    data = toy()
    data.graphs.pop()
    assert len(data.graphs) == 4 and check_graphs(data.graphs).num_graphs == 4


def test_they_are_a_list() -> None:
    graphs: Any = toy().graphs
    assert len(graphs) == 5 and bool(graphs) and unopened(graphs) is not None
    one = list(graphs)
    assert all(a is b for a, b in zip(graphs, one)) and graphs[-1] is one[-1]
    assert len(graphs[1:3]) == 2 and graphs[1:3][0] is one[1]
    assert len(graphs + one) == 10 and len(one + graphs) == 10 and len(graphs * 2) == 10
    for other in (copy.copy(graphs), graphs.copy(), copy.copy(toy().graphs), pickle.loads(pickle.dumps(toy().graphs))):
        other.append(one[0])
        assert len(other) == 6 and len(graphs) == 5


def test_they_grow_as_a_list_does() -> None:
    graphs: Any = toy().graphs
    more = list(toy().graphs)
    graphs += more[:2]
    assert len(graphs) == 7 and graphs[-1] is more[1]
    graphs *= 2
    assert len(graphs) == 14 and check_graphs(graphs).num_graphs == 14


def test_two_threads_see_one_list() -> None:
    for _ in range(20):
        graphs: Any = toy().graphs
        start = threading.Barrier(2)

        def first(graphs: Any = graphs, start: threading.Barrier = start) -> Any:
            start.wait()
            return graphs[0]

        with ThreadPoolExecutor(2) as pool:
            one, other = [pool.submit(first) for _ in range(2)]
            assert one.result() is other.result() is graphs[0]


def test_labels_of_nodes_are_not_those_of_graphs() -> None:
    data = toy(y=[0.5, 1.5, 2, 2, 1])
    with pytest.raises(ValueError, match=r"graph 0 to have y of shape \(4, 1\)"):
        replace(data, level="node")


@pytest.mark.parametrize(("name", "kind", "value"), [("x", "float", np.nan), ("edge_attr", "float", np.inf), ("x", "int", -3)])
def test_mistakes_are_told_in_the_same_words(name: str, kind: str, value: float) -> None:
    flat = arrays(kind, kind)
    getattr(flat, name)[-1] = value
    benchmark = toy(kind, kind)
    bad = type(benchmark.graphs)((), unopened(benchmark.graphs)._replace(flat=flat))  # type: ignore[call-arg, union-attr]
    with pytest.raises(ValueError) as found:
        check_graphs(bad)
    with pytest.raises(ValueError) as expected:
        check_graphs(flat.graphs(torch.zeros(5)))
    assert str(found.value) == str(expected.value)
