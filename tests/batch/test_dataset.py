"""What a compiled dataset says of itself, and which selections it takes."""

from __future__ import annotations

import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event, Thread

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch.dataset import SLICING
from enfa.batch.static.packed import PackedLoader


@pytest.fixture
def compiled(graphs: list[Data]) -> enfa.CompiledDataset:
    return enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2), progress=False)


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
def test_rows_per_graph_are_those_of_each_graphs_own_plan(
    model: nn.Module, policy: enfa.Policy, kind: str, graphs: list[Data]
) -> None:
    compiled = enfa.compile(graphs, policy, model.spec, progress=False, kind=kind)
    found = compiled.rows_per_graph()
    alone = np.array([sum(compiled[g].cost().rows) for g in range(len(compiled))])
    if kind == "ego":
        assert (found >= alone).all()
    else:
        np.testing.assert_array_equal(found, alone)
    batch = [5, 3, 16]
    assert max(alone[batch]) <= sum(compiled[batch].cost().rows) <= sum(found[batch])


def test_sizes(compiled: enfa.CompiledDataset, graphs: list[Data]) -> None:
    nodes = [graph.num_nodes for graph in graphs]
    assert len(compiled) == len(graphs)
    assert compiled.num_subgraphs == sum(max(n, 1) for n in nodes)
    assert compiled.num_pairs == sum(n * n for n in nodes) == compiled[:].num_pairs
    assert compiled.cost().rows == compiled[:].cost().rows


def test_every_way_to_choose_graphs(compiled: enfa.CompiledDataset) -> None:
    mask = np.zeros(len(compiled), bool)
    mask[[2, 5]] = True
    for chosen in ([2, 5], np.array([2, 5]), torch.tensor([2, 5]), mask, torch.from_numpy(mask), slice(2, 6, 3)):
        assert compiled[chosen].graph_ids.tolist() == [2, 5]
        assert compiled[chosen].y.tolist() == [2, 5]
    assert compiled[7].graph_ids.tolist() == [7]
    assert compiled[[5, 2]].graph_ids.tolist() == [5, 2]
    assert compiled[-1].graph_ids.tolist() == [22] and compiled[[-23, 3, -2]].graph_ids.tolist() == [0, 3, 21]


@pytest.mark.parametrize(
    ("chosen", "error", "message"),
    [
        ([0, 99], IndexError, "Expected graphs 0 to 22, got 0 to 99"),
        ([-24], IndexError, "Expected graphs 0 to 22, got -24 to -24"),
        ([22, -1], ValueError, "at most once"),
        ([3, 3], ValueError, "at most once"),
        ([0.5], IndexError, "float64"),
        ([[1, 2]], IndexError, "shape [1, 2]"),
        ([True, False], IndexError, "Expected a mask of shape [23], got [2]"),
    ],
)
def test_wrong_choices(compiled: enfa.CompiledDataset, chosen: list, error: type, message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        compiled[chosen]


def test_labels_of_added_graphs(compiled: enfa.CompiledDataset, new_graphs: list[Data]) -> None:
    assert compiled[compiled.extend(new_graphs)].y.tolist() == [-1] * len(new_graphs)
    labelled = [graph.clone().update({"y": torch.tensor([40 + i])}) for i, graph in enumerate(new_graphs)]
    assert compiled[compiled.extend(labelled)].y.tolist() == [40 + i for i in range(len(new_graphs))]
    with pytest.raises(ValueError, match=re.escape("Expected 'y' of shape [] per graph, as compiled, got [2]")):
        compiled.extend([graph.clone().update({"y": torch.ones(1, 2)}) for graph in new_graphs])


def test_labels_take_the_shape_that_tasks_have(graphs: list[Data]) -> None:
    several = [graph.clone().update({"y": torch.tensor([[1.0, float("nan"), i]])}) for i, graph in enumerate(graphs)]
    compiled = enfa.compile(several, enfa.NodeMarking(), enfa.Spec(1), progress=False)
    assert compiled[[4, 1]].y[:, 2].tolist() == [4, 1]
    several[6].y = torch.zeros(1, 2)
    with pytest.raises(ValueError, match=re.escape("graph 6: Expected 'y' of shape [1, 3], got [1, 2]")):
        enfa.compile(several, enfa.NodeMarking(), enfa.Spec(1), progress=False)
    without = [Data(x=graph.x, edge_index=graph.edge_index) for graph in graphs]
    assert enfa.compile(without, enfa.NodeMarking(), enfa.Spec(1), progress=False)[:3].y is None


def test_a_refused_extension_leaves_the_dataset_alone(graphs: list[Data]) -> None:
    compiled = enfa.compile(graphs, enfa.NodeMarking(), enfa.Spec(2, edge_attr=True), progress=False)
    before, key = compiled.cost(), compiled.key
    wide = Data(x=torch.zeros(2, 3, dtype=torch.long), edge_index=torch.zeros(2, 0, dtype=torch.long))
    wide.edge_attr = torch.zeros(0, 2, dtype=torch.long)
    with pytest.raises(ValueError, match="Expected 'x' with 2 columns of int64, as compiled, got 3"):
        compiled.extend([wide])
    with pytest.raises(ValueError, match="edge_attr"):
        compiled.extend([Data(x=wide.x[:, :2], edge_index=wide.edge_index)])
    assert compiled.cost() == before and compiled.key == key and len(compiled) == len(graphs)


def _content(plan: enfa.Plan) -> list[list]:
    return [tensor.tolist() for tensor in plan.tensors()]


def test_several_threads_slice_one_dataset(compiled: enfa.CompiledDataset) -> None:
    chosen = [[i % 23, (i + 7) % 23, (i + 11) % 23] for i in range(40)]
    expected = [_content(compiled[some]) for some in chosen]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(3) as threads:
            for turn in range(5):
                order = np.random.default_rng(turn).permutation(len(chosen))
                for i, found in zip(order, threads.map(lambda i: _content(compiled[chosen[i]]), order)):
                    assert found == expected[i]
    finally:
        sys.setswitchinterval(before)


def test_several_threads_pack_batches_of_one_dataset(graphs: list[Data]) -> None:
    """Two loaders share the scratch that a cut reads until it is written."""
    model = enfa.DSGNN([4, 3], 8, 2, 2)
    compiled = enfa.compile(graphs, enfa.NodeMarking(), model.spec, progress=False)

    def blocks(loader: PackedLoader) -> list[list]:
        return [_content(packed.plan) for _ in range(5) for packed in loader]

    loaders = [PackedLoader(compiled, model.needs, size, keep=0) for _ in range(2) for size in (3, 5)]
    expected = [blocks(loader) for loader in loaders[:2]]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as threads:
            assert list(threads.map(blocks, loaders[2:])) == expected
    finally:
        sys.setswitchinterval(before)


def test_a_process_is_forked_between_two_slices() -> None:
    held, done = Event(), Event()

    def slicing() -> None:
        with SLICING:
            held.set()
            done.wait(0.2)
            done.set()

    thread = Thread(target=slicing)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        os._exit(0 if done.is_set() and SLICING.acquire(blocking=False) else 1)
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
