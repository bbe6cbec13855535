"""Batches from worker processes are what they would have been without."""

import io
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import EdgeIndex

import enfa
from enfa.batch.dataset import CompiledDataset
from enfa.testing import random_graphs


@pytest.fixture(scope="module")
def compiled() -> CompiledDataset:
    graphs = random_graphs(12, nodes=7, channels=3)
    for number, graph in enumerate(graphs):
        graph.y = torch.tensor([number])
    return enfa.compile(graphs, enfa.NodeMarking(), enfa.DSGNN(3, 4, 1, 2), progress=False)


def _loaded(compiled: CompiledDataset, **options: Any) -> Any:
    return next(iter(enfa.DataLoader(compiled, 6, num_workers=1, **options)))


@pytest.mark.parametrize("save", [torch.save, pickle.dump])
def test_a_batch_is_saved_without_the_block_that_it_came_in(compiled: CompiledDataset, save: Callable) -> None:
    files = {}
    for workers in (0, 1):
        batch = next(iter(enfa.DataLoader(compiled, 6, num_workers=workers)))
        save(batch, files.setdefault(workers, io.BytesIO()))
    sizes = [file.tell() for file in files.values()]
    assert sizes[1] < 1.2 * sizes[0]
    files[1].seek(0)
    back = torch.load(files[1], weights_only=False) if save is torch.save else pickle.load(files[1])
    model = enfa.DSGNN(3, 4, 1, 2).eval()
    assert torch.equal(model(back), model(_loaded(compiled)))


class Named(NamedTuple):
    y: Tensor
    graph_ids: Tensor


@dataclass(frozen=True)
class Frozen:
    y: Tensor


def _odd(batch: Any) -> dict[str, Any]:
    """What PyTorch sends in ways of its own."""
    return {
        "named": Named(torch.ones(2), torch.ones(3)), "frozen": Frozen(torch.ones(1)), "sparse": torch.eye(2).to_sparse(),
        "csr": torch.eye(2).to_sparse_csr(), "parameter": nn.Parameter(torch.ones(2)), "conj": torch.ones(2).cfloat().conj(),
        "edges": EdgeIndex(torch.tensor([[0, 1], [1, 0]]), sparse_size=(2, 2)), "leaf": torch.ones(2, requires_grad=True),
        "twice": [batch.y, batch.y], "none": None,
    }  # fmt: skip


@pytest.mark.filterwarnings("ignore:Sparse")
def test_tensors_of_all_kinds_come_as_they_are(compiled: CompiledDataset) -> None:
    found, expected = _loaded(compiled, collate_fn=_odd), _odd(compiled[list(range(6))])
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        assert type(found[name]) is type(value), name
        if isinstance(value, Tensor):
            assert found[name].layout == value.layout and found[name].requires_grad == value.requires_grad, name
            assert torch.equal(found[name].detach().to_dense(), value.detach().to_dense()), name
    assert torch.equal(found["named"].graph_ids, torch.ones(3)) and torch.equal(found["frozen"].y, torch.ones(1))
    assert found["twice"][0] is found["twice"][1] and torch.equal(found["twice"][0], expected["twice"][0])
