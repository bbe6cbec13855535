"""Rows that no subgraph has exist in no plan.

In complete graphs, stars and tiny graphs an edit reaches every node within a layer or two. The unedited graph's rows then stand
for nothing, and under BatchNorm in training, with the others' variance, they could be anything.
"""

from __future__ import annotations

import copy
import itertools

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.batch.static.padding import pad_plan
from enfa.plan.derived.lowered import lowered as lowered_lists
from enfa.plan.derived.prepare import lean, prepare
from enfa.testing.results import distance, results_of, scales_of


def _graph(nodes: int, pairs: list[tuple[int, int]]) -> Data:
    """Equal features everywhere."""
    both = sorted({*pairs, *((b, a) for a, b in pairs)})
    index = torch.tensor(both, dtype=torch.int64).reshape(-1, 2).t().contiguous()
    return Data(x=torch.ones(nodes, 2), edge_index=index, edge_attr=torch.ones(len(both), 1))


def _complete(n: int) -> Data:
    return _graph(n, list(itertools.combinations(range(n), 2)))


def _star(n: int) -> Data:
    return _graph(n, [(0, i) for i in range(1, n)])


def _cycle(n: int) -> Data:
    return _graph(n, [(i, (i + 1) % n) for i in range(n)])


BATCHES = {
    "K2": [_complete(2)],
    "K6": [_complete(6)],
    "K1 and K2": [_complete(1), _complete(2)],
    "K1 to K9": [_complete(n) for n in range(1, 10)],
    "stars and cycles": [_star(3), _star(7), _cycle(3), _cycle(4), _cycle(9)],
    "a mixture": [_cycle(12), _complete(8), _star(5), _complete(1), _complete(3), _cycle(5)],
}
POLICIES = [
    enfa.NodeMarking(),
    enfa.NodeMarking(distances=2),
    enfa.NodeDeletion(),
    enfa.NodeDeletion(isolate=True),
    enfa.EdgeDeletion(),
    enfa.EdgeMarking(),
    enfa.EgoNets(1, mark=True),
    enfa.Subsample(enfa.NodeMarking(), count=2),
]
MODELS = {"ds": {}, "ds, all tables": {"jk": "concat"}, "dss": {"context": "dss"}, "mpnn": {"context": "mpnn"}}


def _model(name: str, policy: enfa.Policy, layers: int = 3) -> nn.Module:
    torch.manual_seed(layers)
    options, edge_marks = dict(MODELS[name]), policy.edge_mark_channels
    if edge_marks:
        options |= {"conv": "gine", "edge_channels": 1, "edge_mark_channels": edge_marks}
    kind = enfa.DSSGNN if "context" in options else enfa.DSGNN
    model = kind(2, 6, 2, layers, mark_channels=policy.mark_channels, **options)
    for module in model.modules():  # away from the kink of ReLU, at which rounding chooses one of two gradients
        if isinstance(module, nn.BatchNorm1d):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias)
    return model


def _assert_all_count(plan: enfa.Bag) -> None:
    """Each table has only rows that stand for something, and lists name only those."""
    totals = {"pairs": plan.num_pairs, "nodes": plan.num_nodes, "subgraphs": plan.num_subgraphs}
    for number, (step, table) in enumerate(zip(plan.program.steps, plan.tables)):
        if step.kind in totals:
            assert (table.copies > 0).all() and int(table.copies.sum()) == table.total == totals[step.kind], step
            assert len(table.copies) == plan.num_rows(number), step
        if table.sums is not None:
            lowered = [int(name.split()[1]) for n, name in plan.program.needs if n == number and name.startswith("lowered")]
            lists = {step.reads[0]: table.sums, **{to: lowered_lists(plan, number, to) for to in lowered}}
            for read, sums in lists.items():
                assert not len(sums.row) or 0 <= int(sums.row.min()) <= int(sums.row.max()) < plan.num_rows(read), step


# Every policy with every model, in half of the batches; every batch with half of the models of each policy, and the other
# way round.
CASES = [
    pytest.param(policy, name, batch, id=f"{policy!r}-{name}-{batch}")
    for (i, policy), (j, name), (k, batch) in itertools.product(enumerate(POLICIES), enumerate(MODELS), enumerate(BATCHES))
    if (i + j + k) % 2 == 0
]


@pytest.mark.parametrize(("policy", "name", "batch"), CASES)
def test_training_mode(policy: enfa.Policy, name: str, batch: str) -> None:
    model, graphs = _model(name, policy), BATCHES[batch]
    plan = enfa.make_plan(graphs, policy, model)
    if plan.num_pairs == 1:
        pytest.skip("PyTorch's BatchNorm refuses to train on a single row")
    _assert_all_count(plan)
    # Where all rows are equal, gradients are zero but for rounding, which every norm multiplies by 316: weights disturbed by
    # a few roundings tell how far the conventional model determines its own numbers.
    double, disturbed = copy.deepcopy(model).double(), copy.deepcopy(model).double()
    full = enfa.make_plan(graphs, policy, double, "full")
    with torch.no_grad():
        for parameter in disturbed.parameters():
            parameter.mul_(1 + 1e-15 * torch.randn_like(parameter))
    exact = results_of(double, full, True, 0)
    own = _errors(results_of(disturbed, full, True, 0), exact)
    for kind in ("ego", "distinct"):
        for what, error in _errors(results_of(double, enfa.make_plan(graphs, policy, double, kind), True, 0), exact).items():
            assert error <= max(1e-8, 10 * own[what]), (kind, what)
    # in float32, where equal rows have no variance to divide by, the conventional model itself may be far off
    found = _errors(results_of(model, plan, True, 0), exact)
    for what, theirs in _errors(results_of(model, enfa.make_plan(graphs, policy, model, "full"), True, 0), exact).items():
        assert found[what] <= max(1e-3, 4 * theirs), what


def _errors(found: dict[str, Tensor], exact: dict[str, Tensor]) -> dict[str, float]:
    """The largest errors of outputs, gradients and buffers, relative to the largest entry of each kind."""
    errors, largest = {}, {}
    for what, value in exact.items():
        kind = what.split()[0]
        errors[kind] = max(errors.get(kind, 0.0), distance(found.get(what), value))
        largest[kind] = max(largest.get(kind, 0.0), float(value.abs().max()))
    return {kind: error / (largest[kind] or 1.0) for kind, error in errors.items()}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("nodes", range(2, 10))
def test_a_complete_graph_and_all_defaults(nodes: int, name: str) -> None:
    """All rows of a layer of GIN are equal there: BatchNorm centres them to exactly zero, whatever the plan."""
    torch.manual_seed(nodes)
    options = MODELS[name]
    model = (enfa.DSSGNN if "context" in options else enfa.DSGNN)(2, 8, 2, 5, **options)
    for dtype in (torch.float32, torch.float64):
        model = model.to(dtype)
        plans = (enfa.make_plan([_complete(nodes)], enfa.NodeMarking(), model, k) for k in ("full", "distinct"))
        expected, found = (results_of(model, plan, True, 0) for plan in plans)
        assert max(_errors(found, expected).values()) <= (1e-3 if dtype == torch.float32 else 1e-8)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("policy", POLICIES[:5], ids=repr)
def test_however_the_plan_is_made(policy: enfa.Policy, name: str) -> None:
    """Sliced, extended, padded and drawn, against the same graphs' full plan."""
    model, graphs = _model(name, policy).double(), [g for batch in BATCHES.values() for g in batch]
    compiled = enfa.compile(graphs[:15], policy, model, progress=False)
    needs = compiled.program.needs
    compiled.extend(graphs[15:])
    assert compiled.cost().rows == compiled[:].cost().rows  # the dataset has no others either
    for chosen in ([1], [7, 2], [0, 4, 16, 3], list(range(len(graphs)))):
        plan = compiled[chosen]
        _assert_all_count(plan)
        padded = pad_plan(lean(prepare(compiled[chosen], needs), needs))
        expected = results_of(model, enfa.make_plan([graphs[g] for g in chosen], policy, model, "full"), True, 0)
        scales = scales_of(expected)
        for found in (results_of(model, plan, True, 0), results_of(model, padded, True, 0)):
            for what, value in expected.items():
                assert distance(found.get(what), value) <= 1e-8 * scales[what], what


@pytest.mark.parametrize("name", ["ds", "ds, all tables"])
@pytest.mark.parametrize("policy", POLICIES[:5], ids=repr)
def test_parts_of_bags(policy: enfa.Policy, name: str) -> None:
    """A draw may lack rows that the whole bag has."""
    model, graphs = _model(name, policy).double(), [*BATCHES["a mixture"], _graph(7, [(i, i + 1) for i in range(6)])]
    draw = enfa.Subsample(policy, count=1)
    compiled, full = (enfa.compile(graphs, policy, model, progress=False, kind=kind) for kind in ("distinct", "full"))
    for epoch in range(3):
        for chosen in (np.arange(7), np.array([6]), np.array([5, 0])):
            plan = compiled.plan(chosen, draw, epoch)
            _assert_all_count(plan)
            expected = results_of(model, full.plan(chosen, draw, epoch), True, 0)
            scales, found = scales_of(expected), results_of(model, plan, True, 0)
            for what, value in expected.items():
                assert distance(found.get(what), value) <= 1e-8 * scales[what], what
