"""What is told of policies of one's own that draw, or find nothing."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
import pytest
import torch

import enfa
from enfa.draws import drawn_late
from enfa.edits import GraphView
from enfa.testing import random_graph, random_graphs

GRAPHS, LARGE = random_graphs(6, 10, seed=1, channels=3), random_graph(60, seed=2, channels=3)
MODEL = enfa.DSGNN(3, 4, 2, 2)


PROGRAM = enfa.trace(MODEL, GRAPHS, enfa.NodeMarking())


def _shards(graphs: list, policy: enfa.Policy, out: Path) -> object:
    return enfa.compile(graphs, policy, MODEL, out=out, workers=1, shards=1, progress=False)


MAKE: dict[str, Callable] = {
    "make_plan": lambda graphs, policy, out: enfa.make_plan(graphs, policy, MODEL),
    "compile": lambda graphs, policy, out: enfa.compile(graphs, policy, MODEL, progress=False),
    "shards": _shards,
}


class _Drawn(enfa.Policy):
    """Marks one node of each graph."""

    def __init__(self, by: str) -> None:
        self.by = by
        if by == "kept":
            self.rng = np.random.default_rng(0)

    def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
        draw: dict[str, Callable[[int], int]] = {
            "python": random.randrange,
            "numpy": lambda n: int(np.random.randint(n)),
            "torch": lambda n: int(torch.randint(n, (1,))),
            "own": lambda n: int(np.random.default_rng().integers(n)),
            "kept": lambda n: int(self.rng.integers(n)),
            "position": lambda n: int(np.random.default_rng([0, graph.position]).integers(n)),
            "seeded": lambda n: random.Random(n).randrange(n),
        }
        yield enfa.Subgraph().mark_node(draw[self.by](graph.num_nodes))


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("by", ["python", "numpy", "torch", "own"])
def test_draws_are_told_of_and_generators_stay_as_they_are(by: str, make: Callable, tmp_path: Path) -> None:
    for seed in (random.seed, np.random.seed, torch.manual_seed):
        seed(3)
    with pytest.warns(UserWarning, match=rf"^_Drawn\(by='{by}'\) gives other subgraphs.*default_rng\(\[seed, graph.position"):
        make(GRAPHS, enfa.Subsample(_Drawn(by), count=1) if by == "own" else _Drawn(by), tmp_path)


def test_what_is_drawn_after_it_is_as_without() -> None:
    for policy in (enfa.NodeMarking(), _Drawn("position")):
        torch.manual_seed(3), random.seed(3), np.random.seed(3)
        enfa.make_plan(GRAPHS, policy, MODEL)
        after = random.random(), float(np.random.rand()), float(torch.rand(1))
        random.seed(3), np.random.seed(3), torch.manual_seed(3)
        assert after == (random.random(), float(np.random.rand()), float(torch.rand(1)))


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
@pytest.mark.parametrize("by", ["position", "seeded"])
def test_draws_by_a_seed_are_not(by: str, make: Callable, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(GRAPHS, _Drawn(by), tmp_path)


def test_only_small_graphs_are_asked_for_again() -> None:
    asked = []

    class Asked(enfa.Policy):
        def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
            asked.append(graph.position)
            yield enfa.Subgraph().mark_node(0)

    enfa.make_plan([*GRAPHS, LARGE], Asked(), enfa.trace(MODEL, GRAPHS, enfa.NodeMarking()))
    assert asked[:7] == list(range(7)) and len(asked) == 7 + 2 * 3 and 6 not in asked[7:]


class _Finds(enfa.Policy):
    """Deletes the nodes that so many edges lead to."""

    def __init__(self, edges: int) -> None:
        self.edges = edges

    def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
        for node in np.flatnonzero(np.bincount(graph.edge_index[1]) == self.edges).tolist():
            yield enfa.Subgraph().delete_node(node)


def test_one_that_leaves_graphs_as_they_are_means_it() -> None:
    """A plain GNN, to be compared with."""

    class Unedited(enfa.Policy):
        def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
            yield enfa.Subgraph()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enfa.make_plan(GRAPHS, Unedited(), MODEL)


@pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)
def test_a_policy_that_finds_nothing_is_told_of(make: Callable, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match=r"^_Finds\(edges=99\) edits none of the 6 graphs, so every subgraph is its graph"):
        make(GRAPHS, _Finds(99), tmp_path / "a")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(GRAPHS, _Finds(3), tmp_path / "b")


@pytest.mark.parametrize("edit", [True, False])
def test_subgraphs_that_are_handed_out_once_are_not_asked_for_again(edit: bool) -> None:
    class Once(enfa.Policy):
        def __init__(self) -> None:
            self.store = {place: enfa.Subgraph().mark_node(0) if edit else enfa.Subgraph() for place in range(len(GRAPHS))}

        def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
            yield self.store.pop(graph.position)

    _silent(Once(), PROGRAM)


def test_what_cannot_be_copied_is_not_asked_again() -> None:
    class Locked(_Drawn):
        def __init__(self) -> None:
            super().__init__("python")
            self.lock = Lock()

    _silent(Locked(), PROGRAM)


def test_a_generator_of_the_policy_s_own_stays_as_it_is() -> None:
    policy, expected = _Drawn("kept"), _Drawn("kept")
    with pytest.warns(UserWarning, match="gives other subgraphs"):
        enfa.make_plan(GRAPHS, policy, PROGRAM)
    for graph in GRAPHS:
        expected.rng.integers(graph.num_nodes)
    assert policy.rng.integers(2**60) == expected.rng.integers(2**60)


def test_the_same_subgraphs_in_another_order_are_the_same() -> None:
    class Shuffled(enfa.Policy):
        def bag(self, graph: GraphView) -> Iterator[enfa.Subgraph]:
            for v in np.random.default_rng().permutation(graph.num_nodes).tolist():
                kept = sorted({v, 0, 1}, key=lambda u: random.random())
                yield enfa.Subgraph().keep_nodes(kept).mark_node(v).rooted_at(v)

    _silent(Shuffled(), PROGRAM)


@pytest.mark.parametrize("by", ["python", "numpy", "torch", "kept"])
def test_draws_of_a_run_s_seed_are_the_same_in_its_next(by: str) -> None:
    with drawn_late(3):
        _silent(_Drawn(by), MODEL)
    with drawn_late(3), pytest.warns(UserWarning, match="gives other subgraphs"):
        enfa.make_plan(GRAPHS, _Drawn("own"), MODEL)


def _silent(policy: enfa.Policy, model: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        enfa.make_plan(GRAPHS, policy, model)
