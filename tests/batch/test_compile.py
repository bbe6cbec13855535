"""Compiled once and sliced, the answers stay those of the full plan."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import enfa
import enfa.batch.rows
from enfa.edits import GraphView


@pytest.fixture(autouse=True)
def several_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A few graphs per chunk, so that chunks are merged in every test."""
    monkeypatch.setattr(enfa.batch.rows, "_PAIRS", 60)


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
def test_exact_in_shuffled_batches_after_loading_and_after_extending(
    model: nn.Module, policy: enfa.Policy, kind: str, graphs: list[Data], new_graphs: list[Data],
    assert_exact: Callable, tmp_path: Path,
) -> None:  # fmt: skip
    compiled = enfa.compile(graphs, policy, model.spec, progress=False, kind=kind)
    loader = enfa.DataLoader(compiled, batch_size=9, shuffle=True, seed=3)
    for plan in itertools.islice(loader, 2):
        assert_exact(model, plan, [graphs[i] for i in plan.graph_ids], policy)
    compiled.save(tmp_path / "one.enfa")
    loaded = enfa.load_compiled(tmp_path / "one.enfa")
    picked = np.array([20, 3, 0, 17, 8])
    assert_exact(model, loaded[picked], [graphs[i] for i in picked], policy)
    added = loaded.extend(new_graphs)
    assert added.tolist() == list(range(len(graphs), len(graphs) + len(new_graphs)))
    together = graphs + new_graphs
    for chosen in (added, np.concatenate([added[::-1], picked]), picked):
        assert_exact(model, loaded[chosen], [together[i] for i in chosen], policy)
    loaded.save(tmp_path / "two.enfa")
    mixed = np.concatenate([picked, added])
    assert_exact(
        model, enfa.load_compiled(tmp_path / "two.enfa")[mixed], [together[i] for i in mixed], policy
    )


def test_gradients_through_a_slice(graphs: list[Data], policy: enfa.Policy) -> None:
    torch.manual_seed(0)
    model = enfa.DSSGNN([5, 3], 6, 2, 3, "gine", edge_channels=[4, 3]).double()
    compiled, chosen = enfa.compile(graphs, policy, model.spec, progress=False), [7, 2, 19, 11]
    found = []
    for plan in (compiled[chosen], enfa.make_plan([graphs[i] for i in chosen], policy, model.spec, "full")):
        model.zero_grad()
        model(plan).square().sum().backward()
        found.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    scale = found[1].abs().max()
    torch.testing.assert_close(found[0] / scale, found[1] / scale, rtol=0, atol=1e-10)


def test_chunks_and_threads_change_nothing(
    model: nn.Module, policy: enfa.Policy, graphs: list[Data], monkeypatch: pytest.MonkeyPatch,
    assert_identical: Callable,
) -> None:  # fmt: skip
    several = [enfa.compile(graphs, policy, model.spec, progress=False, threads=t) for t in (1, 2, 5)]
    monkeypatch.setattr(enfa.batch.rows, "_PAIRS", 10**9)
    one = enfa.compile(graphs, policy, model.spec, progress=False)
    made = enfa.make_plan(graphs, policy, model.spec)
    for compiled in several:
        assert compiled.cost().rows == one.cost().rows == made.cost().rows
        assert compiled.cost().edges == one.cost().edges == made.cost().edges
        np.testing.assert_array_equal(compiled.rows_per_graph(), one.rows_per_graph())
        assert compiled.rows.affected == one.rows.affected
        assert len(compiled.rows.deltas) == len(one.rows.deltas)
        assert_identical(compiled[:], several[0][:])


def test_a_chunk_is_at_most_a_few_graphs_here(graphs: list[Data]) -> None:
    checked = enfa.graphs.check_graphs(graphs)
    chunks = enfa.batch.rows._chunks(checked, enfa.NodeMarking().edits(checked))
    assert len(chunks) > 5
    assert np.concatenate(chunks).tolist() == list(range(len(graphs)))


def test_extending_finds_the_same_rows_as_compiling_everything(
    policy: enfa.Policy, graphs: list[Data], new_graphs: list[Data]
) -> None:
    spec = enfa.Spec(3, edge_attr=True)
    compiled = enfa.compile(graphs, policy, spec, progress=False)
    compiled.extend(new_graphs)
    whole = enfa.compile(
        [*graphs, *(graph.clone().update({"y": torch.tensor([0])}) for graph in new_graphs)],
        policy, spec, progress=False,
    )  # fmt: skip
    assert compiled.cost().rows == whole.cost().rows
    np.testing.assert_array_equal(compiled.rows_per_graph(), whole.rows_per_graph())


class First(enfa.Policy):
    """One subgraph: the graph without the first edge of its input. ``last`` makes it the last edge."""

    last = False

    def bag(self, graph: GraphView) -> list[enfa.Subgraph]:
        edges = graph.edge_index.shape[1]
        return [enfa.Subgraph().delete_edge(edges - 1 if self.last else 0)] if edges else []


def test_a_cache_folder_is_used_for_the_same_and_nothing_else(
    graphs: list[Data], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = enfa.Spec(2)

    def compile(policy: enfa.Policy, spec: enfa.Spec = spec, graphs: list[Data] = graphs) -> int:
        enfa.compile(graphs, policy, spec, tmp_path / "cache", progress=False)
        return len(list((tmp_path / "cache").iterdir()))

    assert [compile(enfa.NodeMarking()), compile(enfa.NodeMarking())] == [1, 1]
    assert compile(enfa.NodeDeletion()) == 2
    assert compile(enfa.NodeDeletion(isolate=True)) == 3
    assert compile(enfa.NodeMarking(), enfa.Spec(3)) == 4
    changed = [graph.clone() for graph in graphs]
    changed[3].y = torch.tensor([77])
    assert compile(enfa.NodeMarking(), graphs=changed) == 5
    # the same policy by name and parameters, but other code
    assert [compile(First()), compile(First())] == [6, 6]
    monkeypatch.setattr(First, "last", True)
    assert compile(First()) == 7
    # the same edges in another order, which a policy of one's own can see
    turned = [graph.clone() for graph in graphs]
    turned[2].edge_index, turned[2].edge_attr = turned[2].edge_index.flip(1), turned[2].edge_attr.flip(0)
    assert compile(enfa.NodeMarking(), graphs=turned) == 8


def test_a_cache_file_for_something_else_is_refused(graphs: list[Data], tmp_path: Path) -> None:
    path = tmp_path / "mine.enfa"
    enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2), path, progress=False)
    with pytest.raises(ValueError, match=r"mine\.enfa was compiled for something else.*fingerprint"):
        enfa.compile(graphs[1:], enfa.NodeMarking(), enfa.Spec(2), path, progress=False)
    again = enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2), path, progress=False)
    assert len(again) == len(graphs)


def test_unclear_arguments_are_refused(graphs: list[Data]) -> None:
    with pytest.raises(TypeError, match="NodeMarking"):
        enfa.compile(graphs, "node_marking", enfa.Spec(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="did you mean 'distinct'"):
        enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2), kind="distnct")
    odd = enfa.NodeMarking()
    odd.table = np.zeros(3)  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="NodeMarking to be plain values"):
        enfa.compile(graphs, odd, enfa.Spec(2), progress=False)


@pytest.mark.parametrize("threads", [0, -1, 1.5, True, "2"])
def test_threads(graphs: list[Data], threads: object) -> None:
    with pytest.raises(ValueError, match=f"Expected threads to be an integer >= 1, or None .*, got {threads!r}$"):
        enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(1), progress=False, threads=threads)  # type: ignore[arg-type]
