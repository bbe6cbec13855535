"""Compiled once and sliced, the answers stay those of the full plan; and a file is used for the same and nothing else."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from program_cases import CASES, Chain, assert_exact, graphs_of
from torch import nn

import enfa
import enfa.batch.chunks
from enfa.batch import CorruptFileError
from enfa.edits import GraphView
from enfa.nn.bag import make_plan
from enfa.testing import random_graphs


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few graphs per chunk, so that chunks are merged in every test."""
    monkeypatch.setattr(enfa.batch.chunks, "_MOST", 60)


@pytest.mark.parametrize("name", CASES)
def test_exact_in_shuffled_batches(name: str) -> None:
    case = CASES[name]
    graphs = graphs_of(case)
    loader = enfa.DataLoader(case.compiled(graphs), batch_size=7, shuffle=True, seed=3)
    for plan in itertools.islice(loader, 2):
        assert_exact(case, plan, [graphs[i] for i in plan.graph_ids])


@pytest.mark.parametrize("name", ["ds, edges", "dss", "sun", "ds, shared within graphs"])
def test_gradients_through_a_slice(name: str) -> None:
    case, chosen = CASES[name], [7, 2, 14, 11]
    graphs, model = graphs_of(case), case.made()
    full = make_plan([graphs[i] for i in chosen], case.policy, model, "full")
    found, plan = [], case.compiled(graphs)[chosen]
    full.graph_ids = plan.graph_ids
    for bag in (plan, full):
        model.zero_grad()
        torch.manual_seed(1)
        model(bag).square().sum().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    scale = found[1].abs().max()
    torch.testing.assert_close(found[0] / scale, found[1] / scale, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ["ds, edges", "dss", "sun"])
def test_chunks_and_threads_change_nothing(name: str, monkeypatch: pytest.MonkeyPatch, assert_identical: Callable) -> None:
    case = CASES[name]
    graphs = graphs_of(case)
    several = [case.compiled(graphs, threads=t) for t in (1, 2, 5)]
    monkeypatch.setattr(enfa.batch.chunks, "_MOST", 10**9)
    one, made = case.compiled(graphs), make_plan(graphs, case.policy, case.made())
    for compiled in several:
        assert compiled.cost().rows == one.cost().rows == made.cost().rows
        assert compiled.cost().edges == one.cost().edges == made.cost().edges
        np.testing.assert_array_equal(compiled.rows_per_graph(), one.rows_per_graph())
        assert_identical(compiled[:], several[0][:])


class First(enfa.Policy):
    """One subgraph: the graph without the first edge of its input. ``last`` makes it the last edge."""

    last = False

    def bag(self, graph: GraphView) -> list[enfa.Subgraph]:
        edges = graph.edge_index.shape[1]
        return [enfa.Subgraph().delete_edge(edges - 1 if self.last else 0)] if edges else []


class Wider(Chain):
    """The same steps as Chain, of other widths, another pool and other needs."""

    def __init__(self, layers: int = 2) -> None:
        super().__init__(layers)
        self.embed, self.mark = nn.Linear(3, 4), nn.Linear(1, 4)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = self.mark(bag.mark) + self.embed(bag.x)
        for conv in self.convs:
            h = bag.propagate(conv, h).relu()
        return self.head(bag.pool(bag.pool(h, "max"), "mean"))


def test_a_cache_folder_is_used_for_the_same_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graphs = graphs_of(CASES["ds"])

    def compile(policy: enfa.Policy, model: nn.Module | None = None, graphs: list = graphs, **options: object) -> int:
        model = Chain() if model is None else model
        compiled = enfa.compile(graphs, policy, model, tmp_path / "cache", progress=False, **options)
        assert model(compiled[[1, 2]]).shape == (2, 2) and type(compiled[[0]]) is enfa.Bag
        assert compiled.program.needs == enfa.trace(model, graphs, policy).needs
        return len(list((tmp_path / "cache").iterdir()))

    assert [compile(enfa.NodeMarking()), compile(enfa.NodeMarking())] == [1, 1]
    assert compile(enfa.NodeMarking(), Wider()) == 1  # another model with the same steps
    assert compile(enfa.NodeDeletion()) == 2
    assert compile(enfa.NodeDeletion(isolate=True)) == 3
    assert compile(enfa.NodeMarking(), Chain(3)) == 4
    assert compile(enfa.NodeMarking(), Chain().double()) == 5
    changed = [graph.clone() for graph in graphs]
    changed[3].y = torch.tensor([77])
    assert compile(enfa.NodeMarking(), graphs=changed) == 6
    changed[3].weight = 77.0
    assert compile(enfa.NodeMarking(), graphs=changed) == 7
    # the same policy by name and parameters, but other code
    assert [compile(First()), compile(First())] == [8, 8]
    monkeypatch.setattr(First, "last", True)
    assert compile(First()) == 9
    # the same edges in another order, which a policy of one's own can see
    turned = [graph.clone() for graph in graphs]
    turned[2].edge_index, turned[2].edge_attr = turned[2].edge_index.flip(1), turned[2].edge_attr.flip(0)
    assert compile(enfa.NodeMarking(), graphs=turned) == 10
    assert [compile(enfa.NodeMarking(), kind="full") for _ in range(2)] == [11, 11]
    assert compile(enfa.NodeMarking(), ahead=False) == 11  # no cache of what takes no time


def test_a_file_is_read_and_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    case = CASES["dss"]
    graphs = graphs_of(case)
    before = case.compiled(graphs, cache=tmp_path)[:]
    monkeypatch.setattr("enfa.batch.compile.compile_rows", None)
    again = case.compiled(graphs, cache=tmp_path)
    assert torch.equal(case.made().eval()(again[:]), case.made().eval()(before))


def test_a_cache_file_for_something_else_is_refused(tmp_path: Path) -> None:
    graphs, path = graphs_of(CASES["ds"]), tmp_path / "mine.enfa"
    enfa.compile(graphs, enfa.NodeMarking(), Chain(), path, progress=False)
    for given, model, what in ((graphs[1:], Chain(), "fingerprint"), (graphs, Chain(3), "program: pairs start")):
        with pytest.raises(ValueError, match=rf"mine\.enfa was compiled for something else.*{what}"):
            enfa.compile(given, enfa.NodeMarking(), model, path, progress=False)
    assert len(enfa.compile(graphs, enfa.NodeMarking(), Chain(), path, progress=False)) == len(graphs)


def test_a_damaged_cache_file_is_to_be_deleted(tmp_path: Path) -> None:
    graphs, path = random_graphs(3, 5, seed=1), tmp_path / "mine.enfa"
    enfa.compile(graphs, enfa.NodeMarking(), Chain(), path, progress=False)
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:100] + bytes([whole[100] ^ 1]) + whole[101:]):
        path.write_bytes(damaged)
        with pytest.raises(CorruptFileError, match=r"mine\.enfa: .*: give another cache, or delete it, if"):
            enfa.compile(graphs, enfa.NodeMarking(), Chain(), path, progress=False)
    path.unlink()
    enfa.compile(graphs, enfa.NodeMarking(), Chain(), path, progress=False)
    assert path.read_bytes() == whole


def test_a_cache_that_is_another_file(tmp_path: Path) -> None:
    """Without a suffix it is a file all the same, where it is one already."""
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(CorruptFileError, match=r"notes: .*: give another cache, or delete it, if it is one that enfa has"):
        enfa.compile(random_graphs(3, 5, seed=1), enfa.NodeMarking(), Chain(), tmp_path / "notes", progress=False)
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_cache_that_cannot_be_written_is_refused_before_anything_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graphs = random_graphs(3, 5, seed=1)
    monkeypatch.setattr("enfa.batch.compile.compile_checked", lambda *of: pytest.fail("compiled in vain"))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        enfa.compile(graphs, enfa.NodeMarking(), Chain(), tmp_path / "file" / "folder", progress=False)
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path)
    with pytest.raises(PermissionError, match=tmp_path.name):
        enfa.compile(graphs, enfa.NodeMarking(), Chain(), tmp_path, progress=False)


def test_unclear_arguments_are_refused() -> None:
    graphs = random_graphs(3, 5, seed=1)
    with pytest.raises(TypeError, match="NodeMarking"):
        enfa.compile(graphs, "node_marking", Chain())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean 'distinct'"):
        enfa.compile(graphs, enfa.NodeMarking(), Chain(), kind="distnct")
    odd = enfa.NodeMarking()
    odd.table = np.zeros(3)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="NodeMarking to be plain values"):
        enfa.compile(graphs, odd, Chain(), progress=False)
    graphs[1].x.requires_grad_()
    with pytest.raises(ValueError, match="graph 1: Expected 'x' without a gradient to compile"):
        enfa.compile(graphs, enfa.NodeMarking(), Chain(), progress=False)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads(threads: object) -> None:
    with pytest.raises(ValueError, match=f"Expected threads to be an integer >= 1, or None .*, got {threads!r}$"):
        enfa.compile(random_graphs(2, 4), enfa.NodeMarking(), Chain(), progress=False, threads=threads)  # type: ignore[arg-type]
