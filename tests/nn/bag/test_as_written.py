"""What plain PyTorch and PyG do with a user's module, and plans of every kind alike might not."""

import copy
import functools
import io
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from one_conv import Net, Whole
from torch import Tensor, nn
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
)
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GATConv, GATv2Conv, GINConv, GraphConv, MessagePassing, SAGEConv, global_add_pool

import enfa
from enfa.testing import random_graphs


def _doubled(conv: MessagePassing, which: str) -> None:
    def before(module: nn.Module, given: tuple) -> tuple:
        changed = {**given[-1], "x": tuple(2 * x for x in given[-1]["x"])} if "x" in given[-1] else None
        return (*given[:-1], changed or {k: 2 * v if k == "x_j" else v for k, v in given[-1].items()})

    def after(module: nn.Module, given: tuple, out: torch.Tensor) -> torch.Tensor:
        return 2 * out

    getattr(conv, f"register_{which}")(before if "pre" in which else after)


@pytest.mark.parametrize("make", [lambda: GINConv(nn.Linear(3, 4)), lambda: GraphConv(3, 4), lambda: SAGEConv(3, 4)])
@pytest.mark.parametrize("which", ["message_forward_pre_hook", "aggregate_forward_hook", "propagate_forward_hook", "method"])
def test_hooks_of_a_conv_run(make: Callable[[], MessagePassing], which: str) -> None:
    graphs = random_graphs(2, nodes=5, channels=3)
    conv = make()
    plain = [conv(g.x, g.edge_index).sum(0) for g in graphs]
    if which == "method":
        conv.message = lambda x_j, edge_weight=None: 2 * x_j  # type: ignore[method-assign]
    else:
        _doubled(conv, which)
    expected = torch.stack([conv(g.x, g.edge_index).sum(0) for g in graphs])
    assert not torch.allclose(expected, torch.stack(plain))
    for kind in ("full", "distinct"):
        model = Net(conv)
        found = model(enfa.make_plan(graphs, Whole(), model, kind))
        torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("make", [lambda: GINConv(nn.Linear(3, 4)), lambda: GraphConv(3, 4), lambda: SAGEConv(3, 4)])
@pytest.mark.parametrize("which", ["hook", "method", "hook of all modules", "hook before all modules"])
def test_hooks_of_an_aggregation_run(make: Callable[[], MessagePassing], which: str) -> None:
    graphs, model = random_graphs(2, nodes=5, channels=3), Net(make())
    aggregation, handle = model.conv.aggr_module, None
    hook = lambda module, given, out: 2 * out if module is aggregation else None  # noqa: E731
    before = lambda module, given: (2 * given[0], *given[1:]) if module is aggregation else None  # noqa: E731
    if which == "method":
        forward = aggregation.forward
        aggregation.forward = lambda *args, **kwargs: 2 * forward(*args, **kwargs)
    elif which == "hook before all modules":
        handle = register_module_forward_pre_hook(before)
    else:
        handle = aggregation.register_forward_hook(hook) if which == "hook" else register_module_forward_hook(hook)
    try:
        expected = torch.stack([model.conv(g.x, g.edge_index).sum(0) for g in graphs])
        for kind in ("full", "distinct"):
            torch.testing.assert_close(model(enfa.make_plan(graphs, Whole(), model, kind)), expected)
    finally:
        if handle is not None:
            handle.remove()


@pytest.mark.filterwarnings("ignore")  # PyTorch's, of modules that have nothing to give a gradient to
@pytest.mark.parametrize("make", [lambda: GINConv(nn.Linear(3, 4)), lambda: GraphConv(3, 4), lambda: SAGEConv(3, 4)])
@pytest.mark.parametrize("everywhere", [False, True])
def test_backward_hooks_of_an_aggregation_run(make: Callable[[], MessagePassing], everywhere: bool) -> None:
    batch, model = Batch.from_data_list(random_graphs(2, nodes=5, channels=3)), Net(nn.Sequential())
    model.first, model.conv = nn.Linear(3, 3), make()
    model.forward = lambda bag: bag.pool(bag.pool(bag.propagate(model.conv, model.first(bag.x)), "sum"), "sum")
    aggregation = model.conv.aggr_module
    hook = lambda module, given, out: (3 * given[0], *given[1:]) if module is aggregation else None  # noqa: E731
    handle = register_module_full_backward_hook(hook) if everywhere else aggregation.register_full_backward_hook(hook)
    try:
        expected = torch.autograd.grad(model.conv(model.first(batch.x), batch.edge_index).sum(), model.first.weight)
        for kind in ("full", "distinct"):
            out = model(enfa.make_plan(batch.to_data_list(), Whole(), model, kind))
            torch.testing.assert_close(torch.autograd.grad(out.sum(), model.first.weight), expected)
    finally:
        handle.remove()


def test_a_conv_without_an_aggregation_has_a_method_for_it() -> None:
    def half(inputs: Tensor, index: Tensor, ptr: Any = None, dim_size: int = 0) -> Tensor:
        return torch.zeros(dim_size, inputs.shape[1]).index_add(0, index, inputs) / 2

    graphs, model = random_graphs(2, nodes=5, channels=3), Net(GINConv(nn.Linear(3, 4), aggr=None))
    model.conv.aggr_module, model.conv.aggregate = None, half
    expected = torch.stack([model.conv(g.x, g.edge_index).sum(0) for g in graphs])
    for kind in ("full", "distinct"):
        torch.testing.assert_close(model(enfa.make_plan(graphs, Whole(), model, kind)), expected)


@pytest.mark.parametrize("cls", [GATConv, GATv2Conv])
def test_a_function_around_a_convs_own_runs(cls: type, monkeypatch: pytest.MonkeyPatch) -> None:
    forward = cls.forward

    @functools.wraps(forward)
    def twice(self: Any, *args: Any, **options: Any) -> Tensor:
        return 2 * forward(self, *args, **options)

    graphs, model = random_graphs(2, nodes=5, channels=3), Net(cls(3, 4, add_self_loops=False))
    expected = 2 * torch.stack([model.conv(g.x, g.edge_index).sum(0) for g in graphs])
    monkeypatch.setattr(cls, "forward", twice)
    for kind in ("full", "distinct"):
        torch.testing.assert_close(model(enfa.make_plan(graphs, Whole(), model, kind)), expected)


@pytest.mark.parametrize("make", [lambda: GATConv(3, 4), lambda: GATv2Conv(3, 4, share_weights=True)])
def test_a_linear_of_both_ends_is_called_once(make: Callable[[], MessagePassing]) -> None:
    """What it gives may be another in each call, as with a spectral norm."""
    graphs, conv, calls = random_graphs(2, nodes=5, channels=3), make(), []
    linear = conv.lin if type(conv) is GATConv else conv.lin_l
    linear.register_forward_hook(lambda module, given, out: calls.append(1) or out * len(calls))
    batch, model = Batch.from_data_list(graphs), Net(conv)
    expected = global_add_pool(conv(batch.x, batch.edge_index), batch.batch)
    for kind in ("full", "distinct"):
        plan = enfa.make_plan(graphs, Whole(), model, kind)
        calls.clear()
        torch.testing.assert_close(model(plan), expected)


class Kept(nn.Module):
    """A norm behind the last pool, whose rows something keeps."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 4), nn.BatchNorm1d(4)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = self.linear(bag.x)
        out = bag.pool(bag.pool(h, "sum"), "mean")
        self.kept = self.norm(h)
        return out


def test_statistics_are_up_to_date_when_the_model_returns() -> None:
    graphs, model = random_graphs(3, nodes=5, channels=3), Kept()
    plan = enfa.make_plan(graphs, Whole(), model)
    for step in range(1, 4):
        rows = torch.cat([model.linear(g.x) for g in graphs]).detach()
        before = model.norm.running_mean.clone()
        model(plan).sum().backward()
        assert int(model.norm.num_batches_tracked) == step
        torch.testing.assert_close(model.norm.running_mean, 0.9 * before + 0.1 * rows.mean(0))
        with torch.no_grad():
            model.linear.weight += 1


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.calls = GINConv(nn.Linear(4, 4)), 0  # features, and the mark
        self.register_buffer("times", torch.zeros(()))

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.times += 1
        return self.calls * global_add_pool(self.conv(x, edge_index), batch)


def test_attributes_that_a_lifted_model_sets_are_its_own() -> None:
    graphs: list[Data] = random_graphs(2, nodes=5, channels=3)
    module = Counting()
    lifted = enfa.lift(module)
    plan = enfa.make_plan(graphs, Whole(), lifted)
    assert module.times == 0  # tracing leaves buffers as they were
    module.calls = 0
    first, second = lifted(plan), lifted(plan)
    assert module.calls == 2 and module.times == 2
    torch.testing.assert_close(second, 2 * first)


class Writing(nn.Module):
    """``h += conv(h)``, and ``act`` before it."""

    def __init__(self, act: Callable) -> None:
        super().__init__()
        self.act, self.conv = act, GraphConv(4, 4)

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        h = self.act(torch.cat([bag.x, bag.mark], 1) * 1)
        kept, h = h if isinstance(h, tuple) else (None, h)
        h += bag.propagate(self.conv, h)
        out = bag.pool(h, "sum")
        return bag.pool(out if kept is None else torch.cat([out, bag.pool(kept, "sum")], 1), "sum")


def _beside(h: enfa.Rows) -> tuple[enfa.Rows, enfa.Rows]:
    one, other = torch.cat([h, h], 1).chunk(2, 1)
    return one, other


@pytest.mark.parametrize(
    "act",
    [
        lambda h: h.view(-1, 2, 2).flatten(1), lambda h: h.unsqueeze(1).squeeze(1), lambda h: h.detach().contiguous(),
        lambda h: torch.cat([h, h], 1)[:, :4], lambda h: torch.cat([h, h], 1).chunk(2, 1)[0], lambda h: (h.clone(), h), _beside,
        lambda h: (h * 2, h), lambda h: (h.view(-1, 2, 2).relu().flatten(1), h),
    ],
)  # fmt: skip
def test_later_rows_are_written_where_nobody_else_reads(act: Callable) -> None:
    graphs = random_graphs(3, nodes=6, channels=3)
    enfa.testing.assert_same_as_full(Writing(act), enfa.NodeMarking(), graphs)
    model = Writing(act)
    whole = [g.clone() for g in graphs]
    for g in whole:
        g.x = torch.cat([g.x, torch.zeros(g.num_nodes, 1)], 1)
    found = model(enfa.make_plan(graphs, Whole(), model))
    for g, row in zip(whole, found):
        h = act(g.x * 1)
        kept, h = h if isinstance(h, tuple) else (None, h)
        h = h + model.conv(h, g.edge_index)
        torch.testing.assert_close(row, torch.cat([h] if kept is None else [h, kept], 1).sum(0))


@pytest.mark.parametrize(
    "act",
    [
        lambda h: (h, h.view(-1, 4)), lambda h: (h, h[:, :4]), lambda h: (h.view(-1, 2, 2), h), lambda h: (h.detach(), h),
        lambda h: (h[:, 1:3], h), lambda h: (h[:, :3], h[:, :4]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("inference", [False, True])
def test_later_rows_are_not_written_into_memory_that_others_read(act: Callable, inference: bool) -> None:
    def wide(h: enfa.Rows) -> tuple[enfa.Rows, enfa.Rows]:
        kept, h = act(h)
        return kept.flatten(1), h

    with torch.inference_mode(inference), pytest.raises(TypeError, match="memory others share"):
        enfa.make_plan(random_graphs(2, nodes=5, channels=3), enfa.NodeMarking(), Writing(act if inference else wide))


@pytest.mark.parametrize(
    "act",
    [
        lambda h: h.contiguous(), lambda h: h.float(), lambda h: h.to("cpu"), lambda h: F.relu(h, inplace=True),
        lambda h: F.elu(h, inplace=True), lambda h: F.dropout(h, training=False),
    ],
)  # fmt: skip
def test_what_is_the_same_tensor_is_the_same_rows(act: Callable) -> None:
    def both(h: enfa.Rows) -> tuple[enfa.Rows, enfa.Rows]:
        return h, act(h)

    graphs, model = random_graphs(3, nodes=6, channels=3), Writing(both)
    found = model(enfa.make_plan(graphs, Whole(), model))
    for g, row in zip(graphs, found):
        h = torch.cat([g.x, torch.zeros(g.num_nodes, 1)], 1)
        k = act(h)
        k += model.conv(k.detach().clone(), g.edge_index)
        torch.testing.assert_close(row, torch.cat([k, h], 1).sum(0))


class Remembering(nn.Module):
    """Sets attributes of all kinds in ``forward``."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.order = GINConv(nn.Linear(4, 4)), nn.BatchNorm1d(4), None
        self.passes, self.seen, self.long, self.mixed = 0, [], list(range(5)), [nn.Identity()]
        self.queue: deque = deque()
        self.register_buffer("times", torch.zeros(()))
        self.register_buffer("sparse", torch.eye(3).to_sparse())

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        self.times = self.times + 1
        if self.order is None:
            self.order = [self.conv]
        self.seen.append(self.norm)
        self.mixed.append(self.norm)
        self.queue.append(1)
        for conv in self.order:
            x = conv(x, edge_index)
        self.embedding = self.norm(x)
        return global_add_pool(self.embedding, batch)


def test_tracing_leaves_a_model_as_it_was() -> None:
    graphs, model = random_graphs(3, nodes=5, channels=3), Remembering()
    lifted = enfa.lift(model)
    before = {name: value for name, value in vars(model).items() if name[0] != "_"}
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), lifted)
    assert {name: value for name, value in vars(model).items() if name[0] != "_"} == before
    assert not model.seen and not model.queue and len(model.mixed) == 1 and model.times == 0 and model.training
    lifted(plan)
    assert model.order == [model.conv] and model.seen == model.mixed[1:] == [model.norm] and model.passes == model.times == 1
    start = model.norm.running_mean.clone()
    lifted(plan)  # by the list that the first pass has made
    assert not torch.equal(start, model.norm.running_mean)  # in training mode
    model.order[0](torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]))  # a conv, and no view of one
    with torch.no_grad():
        lifted(plan)
    again = copy.deepcopy(lifted)
    assert torch.equal(again.model.embedding.value, model.embedding.value)
    with pytest.raises(TypeError, match="belong to their plan and cannot be saved"):
        torch.save(lifted, io.BytesIO())


@pytest.mark.parametrize("where", ["conv", "conv.nn"])
@pytest.mark.parametrize("which", ["full_backward_hook", "full_backward_pre_hook"])
def test_backward_hooks_that_would_not_run_are_refused(where: str, which: str) -> None:
    model = Net(GINConv(nn.Linear(3, 4)))
    getattr(model.get_submodule(where), f"register_{which}")(lambda *_: None)
    with pytest.raises(TypeError, match="has a backward hook"):
        enfa.make_plan(random_graphs(2, nodes=5, channels=3), Whole(), model)


def test_backward_hooks_behind_the_last_pool_run() -> None:
    called = []

    class Headed(Net):
        def __init__(self) -> None:
            super().__init__(GINConv(nn.Linear(3, 4)))
            self.head = nn.Linear(4, 1)

        def forward(self, bag: enfa.Bag) -> torch.Tensor:
            return self.head(super().forward(bag))

    model = Headed()
    model.head.register_full_backward_hook(lambda *_: called.append(1))
    model(enfa.make_plan(random_graphs(2, nodes=5, channels=3), Whole(), model)).sum().backward()
    assert called == [1]


class Building(nn.Module):
    """Makes a layer in its first pass, and notes that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.built = GINConv(nn.Linear(4, 4)), False

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        if not self.built:
            self.head, self.built = nn.Linear(4, 2), True
        return self.head(global_add_pool(self.conv(x, edge_index), batch))


class BuildingOfBags(Net):
    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        out = super().forward(bag)
        if not hasattr(self, "head"):
            self.head = nn.Linear(4, 2)
        return self.head(out)


@pytest.mark.parametrize("lifted", [False, True])
def test_layers_of_a_first_pass_stay(lifted: bool) -> None:
    model = Building() if lifted else BuildingOfBags(GINConv(nn.Linear(3, 4)))
    whole = enfa.lift(model) if lifted else model
    plan = enfa.make_plan(random_graphs(3, nodes=6, channels=3), enfa.NodeMarking() if lifted else Whole(), whole)
    head = model.head
    assert len(list(whole.parameters())) == 4 and torch.equal(whole(plan), whole(plan)) and model.head is head


class Kin(nn.Module):
    """Calls ``super()`` for other things than methods of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.calls = GINConv(nn.Linear(4, 4)), 0

    @classmethod
    def named(cls) -> str:
        return cls.__name__

    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        return global_add_pool(self.conv(x, edge_index), batch)


class Child(Kin):
    def forward(self, x: torch.Tensor, edge_index: torch.Tensor, batch: torch.Tensor) -> torch.Tensor:
        super().__setattr__("calls", self.calls + 1)
        assert super().named() == "Child"
        return super().forward(x, edge_index, batch)


def test_super_is_what_it_is_without_plans() -> None:
    model = Child()
    lifted = enfa.lift(model)
    plan = enfa.make_plan(random_graphs(3, nodes=6, channels=3), enfa.NodeMarking(), lifted)
    lifted(plan)
    assert model.calls == 1


class Waiting(nn.Module):
    """Modules that get their sizes in a first pass."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.LazyLinear(4), nn.LazyBatchNorm1d()

    def forward(self, bag: enfa.Bag) -> torch.Tensor:
        return bag.pool(bag.pool(self.norm(self.linear(bag.x)), "sum"), "sum")


def test_lazy_modules_have_had_their_first_pass_and_still_train() -> None:
    model = Waiting()
    plan = enfa.make_plan(random_graphs(2, nodes=5, channels=3), Whole(), model)
    assert model.linear.in_features == 3 and all(module.training for module in model.modules())
    model(plan)
    assert int(model.norm.num_batches_tracked) == 1


def test_lazy_modules_take_weights_before_their_first_pass() -> None:
    graphs, trained, again = random_graphs(2, nodes=5, channels=3), Waiting().eval(), Waiting().eval()
    expected = trained(enfa.make_plan(graphs, Whole(), trained))
    again.load_state_dict(trained.state_dict())
    assert torch.equal(again(enfa.make_plan(graphs, Whole(), again)), expected)
