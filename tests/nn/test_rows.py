from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
import torch
from torch import Tensor, nn
from torch_geometric import nn as pyg

import enfa
from enfa.nn.rows import Rows, current_rows, rows_in_flight
from enfa.testing import random_graphs


def _rows(count: int) -> Rows:
    return Rows(torch.ones(count, dtype=torch.long), count, lambda: torch.arange(count), False)


def test_the_innermost_rows_are_in_flight() -> None:
    assert current_rows() is None
    with rows_in_flight(_rows(1)):
        with rows_in_flight(_rows(2)):
            assert current_rows().total == 2
        assert current_rows().total == 1
        with rows_in_flight(None):
            assert current_rows() is None
    assert current_rows() is None


def test_an_error_takes_them_down_again() -> None:
    with pytest.raises(RuntimeError), rows_in_flight(_rows(1)):
        raise RuntimeError
    assert current_rows() is None


def test_a_backward_pass_does_not_see_those_of_the_forward_pass_around_it() -> None:
    seen, x = [], torch.ones(1, requires_grad=True)
    y = x * 2
    y.register_hook(lambda grad: seen.append(current_rows()))
    with rows_in_flight(_rows(1)):
        torch.autograd.grad(y, x)
    assert seen == [None]


@pytest.fixture
def switching() -> Iterator[None]:
    """Python takes turns between threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def _together(works: list[Callable[[], list[Tensor]]]) -> list[list[Tensor]]:
    start = Barrier(len(works))

    def run(work: Callable[[], list[Tensor]]) -> list[Tensor]:
        start.wait()
        return work()

    with ThreadPoolExecutor(len(works)) as threads:
        return [done.result() for done in [threads.submit(run, work) for work in works]]


def _steps(model: nn.Module, plan: enfa.Plan, count: int) -> list[Tensor]:
    """Outputs of training steps, then weights and BatchNorm buffers."""
    optimiser, found = torch.optim.SGD(model.parameters(), 0.01), []
    for _ in range(count):
        optimiser.zero_grad()
        out = model(plan)
        out.square().mean().backward()
        optimiser.step()
        found.append(out.detach())
    return [*found, *(v.detach() for v in model.state_dict().values())]


def _conv(i: int, o: int) -> nn.Module:
    return pyg.GINConv(nn.Sequential(nn.Linear(i, o), nn.BatchNorm1d(o), nn.Dropout(0.2)))


def test_two_models_train_in_two_threads(switching: None) -> None:
    torch.manual_seed(0)
    works, alone = [], []
    for seed, conv in ((1, "gin"), (2, _conv)):
        model = enfa.DSGNN(3, 4, 2, 2, conv).double()
        plan = enfa.make_plan(random_graphs(3, 6, seed=seed), enfa.NodeMarking(), model.spec)
        alone.append(_steps(copy.deepcopy(model), plan, 300))
        fresh = enfa.make_plan(random_graphs(3, 6, seed=seed), enfa.NodeMarking(), model.spec)
        works.append(lambda model=model, fresh=fresh: _steps(model, fresh, 300))
    for found, expected in zip(_together(works), alone, strict=True):
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_one_model_predicts_in_two_threads(switching: None) -> None:
    """On two plans, and on one whose derived arrays both threads make at once."""
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 4, 2, 2, _conv, dropout=0.5, jk="concat", readout="max").eval()

    def plan(seed: int) -> enfa.Plan:
        return enfa.make_plan(random_graphs(3, 6, seed=seed), enfa.NodeMarking(), model.spec)

    expected = [model(plan(seed)).detach() for seed in (1, 2)]
    for _ in range(30):
        plans = plan(1), plan(2)
        works = [lambda plans=plans, order=order: [model(plans[i]) for i in order] for order in ((0, 1), (0, 1), (1, 0))]
        for found, order in zip(_together(works), ((0, 1), (0, 1), (1, 0))):
            assert all(torch.equal(a, expected[i]) for a, i in zip(found, order))
