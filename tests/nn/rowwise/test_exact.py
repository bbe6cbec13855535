"""BatchNorm and dropout on Rows, against PyTorch's on all copies."""

from __future__ import annotations

import socket

import pytest
import torch
import torch.multiprocessing as mp
from small_bag import ROWS, Dropping, rows_of, small_bag, small_graphs, values
from torch import Tensor, nn
from torch.nn.modules._functions import SyncBatchNorm
from torch_geometric.data import Data
from two_ranks import rank_of_two, shared_bag

import enfa
from enfa.graphs import check_graphs
from enfa.nn.bag import Rows, trace
from enfa.nn.rowwise.rows import EDGES
from enfa.plan.derived.identity import step_identities


def _norms() -> list[nn.Module]:
    made = []
    for cls in (nn.BatchNorm1d, nn.SyncBatchNorm, enfa.CountedBatchNorm):
        made += [cls(4), cls(4, affine=False), cls(4, momentum=None), cls(4, track_running_stats=False), cls(4, 0.1, 0.5)]
    return made


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("number", range(15))
def test_batch_norms_count(number: int, training: bool) -> None:
    bag, norm = shared_bag(), _norms()[number].double()
    if norm.affine:
        norm.weight.data, norm.bias.data = values(4, seed=1), values(4, seed=2)
    copies = bag.tables[0].copies
    reference = nn.BatchNorm1d(4, norm.eps, norm.momentum, norm.affine, norm.track_running_stats).double()
    reference.load_state_dict(norm.state_dict())
    x = values(len(copies), 4, seed=3).requires_grad_()
    every = x.detach().repeat_interleave(copies, 0).requires_grad_()
    norm.train(), reference.train()
    for _ in range(2):
        norm(rows_of(bag, x.detach())), reference(every.detach())
    norm.train(training), reference.train(training)
    out, expected = norm(rows_of(bag, x)).value, reference(every)
    torch.testing.assert_close(out.repeat_interleave(copies, 0), expected, rtol=1e-12, atol=1e-12)
    (out.square() * copies[:, None]).sum().backward()
    expected.square().sum().backward()
    summed = torch.zeros_like(x).index_add_(0, torch.arange(len(copies)).repeat_interleave(copies), every.grad)
    torch.testing.assert_close(x.grad, summed, rtol=1e-12, atol=1e-12)
    for a, b in zip([*norm.buffers(), *norm.parameters()], [*reference.buffers(), *reference.parameters()]):
        torch.testing.assert_close(a, b, rtol=1e-12, atol=1e-12)


def test_a_call_without_rows_counts_and_changes_no_statistics() -> None:
    """The one node of the graph is deleted in its one subgraph."""
    model = enfa.DSGNN(3, 4, 2, 2)
    alone = Data(x=torch.ones(1, 3), edge_index=torch.empty(2, 0, dtype=torch.long))
    for kind in ("full", "distinct"):
        model(enfa.make_plan([alone], enfa.NodeDeletion(), model, kind))
    reference = nn.BatchNorm1d(4)
    for _ in range(2):
        reference(torch.empty(0, 4))
    for found, expected in zip(model.layers[0].norm.buffers(), reference.buffers()):
        assert torch.equal(found, expected)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_counts_do_not_round(dtype: torch.dtype) -> None:
    bag = shared_bag()
    table = bag.tables[0]
    table.copies = torch.arange(len(table.copies)) * 300 + 1001  # no number of 8 or 11 bits
    table.total = int(table.copies.sum())
    x = values(len(table.copies), 4).to(dtype)
    out = nn.functional.batch_norm(rows_of(bag, x), None, None, training=True)
    expected = nn.functional.batch_norm(x.float().repeat_interleave(table.copies, 0), None, None, training=True)
    assert out.dtype == dtype
    eps = torch.finfo(dtype).eps
    torch.testing.assert_close(out.value.float().repeat_interleave(table.copies, 0), expected, rtol=eps, atol=eps)


def test_what_cannot_be_counted() -> None:
    bag = shared_bag()
    norm, edges = nn.BatchNorm1d(2), Rows(torch.ones(1, 2), bag, EDGES)
    with pytest.raises(TypeError, match="batch_norm of edges"):
        norm(edges)
    assert norm.eval()(edges).kind == "edges"
    with pytest.raises(TypeError, match="batch_norm in training takes Rows"):
        nn.BatchNorm1d(2)(rows_of(bag, torch.ones(bag.tables[0].num_rows, 2, 3)))
    with pytest.raises(TypeError, match="dropout of edges"):
        nn.Dropout(0.5)(edges)


@pytest.mark.parametrize("shape", [(), (4,), (2, 3)])
def test_dropout_masks_are_of_what_a_row_is(shape: tuple[int, ...]) -> None:
    bag = small_bag("distinct", Dropping())
    x = values(bag.tables[0].num_rows, *shape)
    found = []
    for _ in range(2):
        torch.manual_seed(3)
        found.append(nn.Dropout(0.5)(rows_of(bag, x)).value)
    assert torch.equal(*found)
    kept = found[0] != 0
    torch.testing.assert_close(found[0][kept], x[kept] * 2)
    module = nn.Dropout(0.3).eval()
    assert torch.equal(module(rows_of(bag, x)).value, x)


def test_dropout_draws_the_same_in_both_plans() -> None:
    shared, full = small_bag("distinct", Dropping()), small_bag("full", Dropping())
    ids = [step_identities(bag, 0) for bag in (shared, full)]
    outs = []
    for bag in (shared, full):
        torch.manual_seed(0)
        outs.append(nn.Dropout(0.5)(rows_of(bag, torch.ones(bag.tables[0].num_rows, 64))).value)
    for identity, row in zip(ids[1], outs[1]):
        assert torch.equal(outs[0][ids[0] == identity][0], row)
    assert 0.3 < float((outs[1] != 0).float().mean()) < 0.7
    assert len({tuple(row.tolist()) for row in outs[1]}) == len(set(ids[1].tolist()))


def test_dropout_in_place_and_at_its_ends() -> None:
    h = rows_of(small_bag(model=Dropping()), values(ROWS, 64))
    before = h.value.clone()
    assert nn.Dropout(0.5, inplace=True)(h) is h and not torch.equal(h.value, before)
    assert not nn.Dropout(1.0)(h).value.any()
    assert nn.functional.dropout(h, 0.0) is h


def test_dropout_that_tracing_did_not_see_is_refused() -> None:
    with pytest.raises(ValueError, match="one mask would strike all graphs"):
        nn.Dropout(0.5)(rows_of(small_bag(), values(ROWS, 64)))


def test_dropout_is_noted_in_evaluation_too() -> None:
    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.drop = nn.Dropout(0.2)

        def forward(self, bag) -> Tensor:
            return bag.pool(bag.pool(self.drop(bag.x)))

    assert trace(Dropped(), check_graphs(small_graphs()), enfa.NodeMarking()).share == "graph"


@pytest.mark.long
def test_counted_batch_norm_over_processes() -> None:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    with mp.Manager() as manager:
        results = manager.dict()
        mp.spawn(rank_of_two, (port, results), nprocs=2)
        assert dict(results) == {0: True, 1: True}


def test_sync_batch_norm_over_processes_is_refused() -> None:
    """Where PyTorch would go on to its own autograd function."""
    h = rows_of(small_bag(), values(ROWS, 4))
    with pytest.raises(TypeError, match=r"enfa\.CountedBatchNorm instead of SyncBatchNorm"):
        SyncBatchNorm.apply(h, None, None, None, None, 1e-5, 0.1, None, 2)


@pytest.mark.parametrize("affine", [True, False])
def test_a_norm_may_be_used_in_evaluation_and_then_in_training_before_gradients_are_asked_for(affine: bool) -> None:
    """As consistency losses do. What evaluation has read is replaced by then."""
    bag, norm = shared_bag(), nn.BatchNorm1d(4, affine=affine).double()
    copies = bag.tables[0].copies
    x = values(len(copies), 4, seed=3).requires_grad_()
    every = x.detach().repeat_interleave(copies, 0).requires_grad_()
    mean, var = norm.running_mean.clone(), norm.running_var.clone()
    evaluated = norm.eval()(rows_of(bag, x)).value
    norm.train()(rows_of(bag, x))
    expected = nn.functional.batch_norm(every, mean, var, norm.weight, norm.bias)
    weights = values(len(copies), 4, seed=4)
    (evaluated * weights).sum().backward()
    (expected * (weights / copies[:, None]).repeat_interleave(copies, 0)).sum().backward()
    found = torch.zeros_like(x).index_add(0, torch.arange(len(copies)).repeat_interleave(copies), every.grad)
    torch.testing.assert_close(x.grad, found)
