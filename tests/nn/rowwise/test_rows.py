"""Rows as Python objects: what else is done with tensors."""

from __future__ import annotations

import copy
import io
import pickle
import threading

import numpy as np
import pytest
import torch
from bag_models import Knowledge, Net
from small_bag import ROWS, Dropping, random_bits, rows_of, small_bag, small_graphs, values
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.nn import MLP, GINConv

import enfa
from enfa.edits import NodeMarking
from enfa.nn.bag import Rows, make_plan
from enfa.nn.rowwise.sharing import sharers
from enfa.testing import random_graphs

REFUSAL = "plans would give different results"


def _h(width: int = 4) -> Rows:
    return rows_of(small_bag(), values(ROWS, width).requires_grad_() * 1)


@pytest.mark.parametrize(
    "take",
    [
        np.asarray, torch.tensor, torch.as_tensor, list, float, int, bool, len,
        reversed, lambda h: 1.0 in h, lambda h: np.ones((ROWS, 4)) * h,
        lambda h: h * np.ones((ROWS, 4)),
        lambda h: h == None,  # noqa: E711
        lambda h: torch.jit.script(nn.Linear(4, 4).double())(h), lambda h: [*zip(h)],
    ],
)  # fmt: skip
def test_rows_do_not_leave_their_table(take) -> None:
    with pytest.raises(TypeError, match=REFUSAL):
        take(_h())


@pytest.mark.parametrize("save", [pickle.dumps, lambda h: torch.save(h, io.BytesIO())])
def test_rows_are_not_saved(save) -> None:
    with pytest.raises(TypeError, match="belong to their plan and cannot be saved"):
        save(_h())


def test_copies_are_rows_of_the_same_plan() -> None:
    h = _h()
    same = copy.copy(h)
    assert same.bag is h.bag and same.number == h.number and same.value is h.value and sharers(h) == [same]
    with pytest.raises(RuntimeError, match="graph leaves"):  # as for tensors
        copy.deepcopy(h)
    new = copy.deepcopy(h.detach())
    assert new.bag is h.bag and torch.equal(new.value, h.value) and not sharers(new)


@pytest.mark.parametrize("take", [torch.vmap(torch.relu), torch.func.grad(torch.sum)])
def test_transforms_take_tensors_only(take) -> None:
    with pytest.raises(ValueError, match="Tensor"):
        take(_h())


def test_numbers_of_numpy() -> None:
    h = _h()
    assert torch.equal((np.float64(2.0) * h).value, h.value * 2)
    assert torch.equal((h / np.sqrt(4.0)).value, h.value / 2)


def test_what_was_pooled_by_columns_keeps_its_names() -> None:
    h = _h()
    assert isinstance(h.max(1).values, Rows) and torch.equal(h.max(1).indices.value, h.value.max(1).indices)


def test_expanded_and_single_rows_are_the_same_for_all() -> None:
    h, token = _h(), values(1, 4, seed=3)
    expected = torch.cat([h.value, token.expand(ROWS, -1)], 1)
    assert torch.equal(torch.cat([h, token], 1).value, expected)
    assert torch.equal(torch.cat([h, token.expand(h.size(0), -1)], 1).value, expected)
    with pytest.raises(TypeError, match=REFUSAL):
        torch.cat([h, token.expand(ROWS, -1).contiguous()], 1)
    with pytest.raises(TypeError, match="shape"):
        torch.cat([h, values(4)], 1)


def test_rows_of_two_tables_meet_in_the_later_one() -> None:
    bag = small_bag("distinct")
    first = rows_of(bag, values(bag.tables[0].num_rows, 4))
    second = Rows(values(bag.tables[1].num_rows, 4, seed=1), bag, 1)
    own = bag.moved(first, 1)
    for got, expected in (
        (first + second, own + second.value), (torch.cat([first, second], 1), torch.cat([own, second.value], 1)),
        (torch.where(first > 0.5, second, 0.0), torch.where(own > 0.5, second.value, 0.0)),
        (torch.einsum("nc,nc->n", first, second), (own * second.value).sum(1)),
        (nn.functional.cosine_similarity(first, second), nn.functional.cosine_similarity(own, second.value)),
        (nn.functional.bilinear(first, second, values(2, 4, 4)), nn.functional.bilinear(own, second.value, values(2, 4, 4))),
    ):  # fmt: skip
        assert got.number == 1 and torch.equal(got.value, expected)
    with pytest.raises(TypeError, match=r"bag\.spread"):
        first + Rows(values(bag.tables[2].num_rows, 4), bag, 2)
    with pytest.raises(TypeError, match="two bags"):
        first + rows_of(small_bag("distinct"), values(bag.tables[0].num_rows, 4))


# Writing in place


def test_in_place_writes_as_tensors_do() -> None:
    h = _h()
    same, part = h, h[:, :2]
    before = h.value.detach().clone()
    h += 1.0
    h.mul_(2.0)
    nn.ReLU(inplace=True)(h)
    assert same is h and torch.equal(h.value, (before + 1) * 2) and torch.equal(part.value, h.value[:, :2])


def test_in_place_with_a_later_table() -> None:
    bag = small_bag()
    h = rows_of(bag, values(ROWS, 2).requires_grad_())
    value = h.value
    kept = h
    h += Rows(values(ROWS, 2, seed=1), bag, 1)
    assert h is kept and h.number == 1
    assert torch.equal(h.value, value + values(ROWS, 2, seed=1)) and torch.equal(value, values(ROWS, 2))
    h.value.sum().backward()
    assert torch.equal(value.grad, torch.ones_like(value))


def test_in_place_with_an_earlier_table() -> None:
    """Rows of the later table stay what they are: what is written into a part of them is written into them."""
    bag = small_bag()
    h = Rows(values(ROWS, 4, seed=1), bag, 1)
    before, earlier = h.value.clone(), rows_of(bag, values(ROWS, 2))
    h[:, :2].add_(earlier)
    assert torch.equal(h.value, torch.cat([before[:, :2] + earlier.value, before[:, 2:]], 1))


def test_in_place_leaves_the_bag_alone() -> None:
    bag = small_bag()
    for name in ("x", "mark", "edge_attr"):
        rows = getattr(bag, name)
        rows += 7
        rows.zero_()
        assert not torch.equal(getattr(bag, name).value, rows.value)


@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_a_model_that_writes_in_place(kind: str) -> None:
    class InPlace(nn.Module):
        def __init__(self, writes: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.embed, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)
            self.conv, self.relu, self.writes = GINConv(MLP([4, 4])), nn.ReLU(inplace=writes), writes

        def forward(self, bag) -> Tensor:
            h = self.embed(torch.cat([bag.x, bag.mark], 1))
            h = self.relu(self.norm(h))
            for _ in range(2):
                more = bag.propagate(self.conv, h)
                if self.writes:
                    h += more
                    h.relu_()
                else:
                    h = (h + more).relu()
            return bag.pool(bag.pool(h))

    results = []
    for writes in (True, False):
        model = InPlace(writes)
        out = model(make_plan(small_graphs(), NodeMarking(), model, kind))
        out.square().sum().backward()
        results.append([out, *(p.grad for p in model.parameters())])
    assert all(torch.equal(a, b) for a, b in zip(*results))


# Checkpoints, functions of autograd, compiled code, threads


class _Part(nn.Module):
    def __init__(self, bag_of) -> None:
        super().__init__()
        self.net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 4)).double()
        self.conv = GINConv(nn.Linear(4, 4)).double()
        self.bag = bag_of

    def forward(self, h: Rows) -> Rows:
        return self.bag.propagate(self.conv, self.net(h))


@pytest.mark.parametrize("kind", ["full", "distinct"])
def test_checkpoints_give_the_same_gradients(kind: str) -> None:
    bag = small_bag(kind, Dropping())
    results = []
    for again in (False, True):
        torch.manual_seed(1)
        part = _Part(bag)
        x = values(bag.tables[0].num_rows, 4).requires_grad_()
        h = rows_of(bag, x)
        out = checkpoint(part, h, use_reentrant=False) if again else part(h)
        bag.pool(bag.pool(out)).square().sum().backward()
        results.append([out.value, x.grad, *(p.grad for p in part.parameters())])
    for a, b in zip(*results):  # the gradient of a bias before a norm is 0, or 0 up to rounding
        torch.testing.assert_close(a, b, rtol=1e-13, atol=1e-13)


def test_reentrant_checkpoints_are_refused() -> None:
    bag = small_bag()
    part, h, dummy = _Part(bag), _h(), torch.ones((), requires_grad=True)
    for run in (lambda _: part(h), lambda _: bag.x, lambda _: bag.pool(h), lambda _: bag.pool(h).value):
        with pytest.raises(TypeError, match="use_reentrant=False"):
            checkpoint(run, dummy, use_reentrant=True)
    with pytest.raises(TypeError, match="use_reentrant=False"):
        checkpoint(part, h, use_reentrant=True)


def test_values_of_other_rows_are_refused() -> None:
    h = _h()
    with pytest.raises(ValueError, match=f"Expected values of the same {len(h.value)} rows, got "):
        h.of(torch.cat([h.value, h.value]))


def test_functions_of_autograd() -> None:
    class Reverse(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, grad):
            return -grad

    h = _h()
    with pytest.raises(TypeError, match=r"h\.of\(Function\.apply\(h\.value\)\)"):
        Reverse.apply(h)
    (grad,) = torch.autograd.grad(h.of(Reverse.apply(h.value)).value.sum(), h.value)
    assert torch.equal(grad, -torch.ones_like(h.value))
    with torch.no_grad():
        assert not h.relu().requires_grad
    with torch.inference_mode():
        assert not h.relu().requires_grad


def test_autocast_and_hooks() -> None:
    h, seen = rows_of(small_bag(), values(ROWS, 4).float()), []
    linear = nn.Linear(4, 4)
    linear.register_forward_hook(lambda module, args, out: seen.append(out))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = nn.Sequential(linear, nn.BatchNorm1d(4))(h)
        assert torch.equal(seen[0].value, nn.functional.linear(h.value, linear.weight, linear.bias))
    assert seen[0].dtype == out.dtype == torch.bfloat16


def test_compiled_modules_run_as_they_are() -> None:
    h = _h()
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.ReLU()).double()
    other = copy.deepcopy(net)
    mine, theirs = torch.compile(net, backend="eager")(h), other(h)
    assert isinstance(mine, Rows) and torch.equal(mine.value, theirs.value)
    for a, b in zip(
        torch.autograd.grad(mine.value.sum(), net.parameters()), torch.autograd.grad(theirs.value.sum(), other.parameters())
    ):
        assert torch.equal(a, b)
    with pytest.raises(TypeError, match=REFUSAL):
        torch.compile(lambda rows: rows.mean(0), backend="eager")(h)


def test_two_threads_with_two_models() -> None:
    """Dropout draws from PyTorch's one generator, so it is off here."""
    graphs = random_bits(6)
    models = [Net().double(), Knowledge().double().eval()]
    bags = [make_plan(graphs, NodeMarking(), model) for model in models]
    expected = [_pass(model, bag) for model, bag in zip(models, bags)]
    wrong: list[str] = []

    def run(number: int) -> None:
        try:
            for _ in range(100):
                for got, right in zip(_pass(models[number], bags[number]), expected[number]):
                    if not torch.equal(got, right):
                        wrong.append(f"model {number} differs")
        except Exception as error:
            wrong.append(repr(error))

    threads = [threading.Thread(target=run, args=(number,)) for number in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _pass(model: nn.Module, bag) -> list[Tensor]:
    out = model(bag)
    return [out, *torch.autograd.grad(out.square().sum(), list(model.parameters()), allow_unused=True, materialize_grads=True)]


def test_the_number_of_rows_of_another_table_of_their_kind_is_theirs() -> None:
    """Attention is written so: the number is that of the queries, before or after a conv."""

    class Heads(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.head = GINConv(nn.Linear(4, 8)), nn.Linear(8, 1)

        def forward(self, bag: enfa.Bag) -> torch.Tensor:
            h = torch.cat([bag.x, bag.mark], 1)
            q = bag.propagate(self.conv, h).view(h.size(0), 2, 4)
            return self.head(bag.pool(bag.pool((q.softmax(-1) * q).flatten(1), "sum"), "mean"))

    enfa.testing.assert_same_as_full(Heads(), enfa.NodeMarking(), random_graphs(4, nodes=8, channels=3))

    class Mixed(Heads):
        def forward(self, bag: enfa.Bag) -> torch.Tensor:
            nodes = bag.across(bag.x, "sum")
            return bag.pool(bag.pool(bag.x.view(nodes.size(0), 3), "sum"), "mean")

    with pytest.raises(TypeError, match="changes the axis of the rows"):
        enfa.make_plan(random_graphs(4, nodes=8, channels=3), enfa.NodeMarking(), Mixed())
