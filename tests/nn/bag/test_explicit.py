"""Any model on any plan gives what it gives on subgraphs written out, with plain tensors and PyTorch's own norms."""

from __future__ import annotations

import copy
import random
from functools import cache
from typing import Any

import pytest
import torch
from bag_models import MODELS, ROOTED, Egos, Molecules
from cases import EVERY
from cases import ROOTED as WITH_ROOTS
from drawn import OWN, Drawn, shaken
from explicit import ExplicitBag
from step_rows import plan_of
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.nn.bag import make_plan, trace
from enfa.nn.bag.trace import in_precision_of
from enfa.plan.check import KINDS
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graph, random_graphs
from enfa.testing.results import distance, results_in_place, scales_of

EDGED = {"edge", "edge marking", "edge degrees", "edge distances", "some edges"}  # rooted at edges, where there are some
TOLERANCE = 1e-10


def _plan(model: nn.Module, policy: enfa.Policy, graphs: list[Data], kind: str = "distinct") -> enfa.Bag:
    """Also where a policy marks edges that the model does not read, which make_plan refuses."""
    return in_precision_of(model, plan_of(graphs, policy, trace(model, graphs, policy), kind))


def assert_explicit(
    model: nn.Module, policy: enfa.Policy, graphs: list[Data], written: ExplicitBag | None = None, evaluated: bool = True
) -> None:
    """Outputs, gradients and buffers of every plan against those of explicit subgraphs."""
    bags: dict[str, Any] = {"explicit": written or ExplicitBag(graphs, policy)}
    program = trace(model, graphs, policy)
    bags |= {kind: in_precision_of(model, plan_of(graphs, policy, program, kind)) for kind in KINDS}
    copies = {kind: copy.deepcopy(model) for kind in bags}
    for train in (False, True) if evaluated else (True,):  # evaluating changes nothing
        results = {kind: results_in_place(copies[kind], bag, train, 0) for kind, bag in bags.items()}
        reference = results.pop("explicit")
        scales = scales_of(reference)
        for kind, found in results.items():
            assert set(found) == set(reference)
            off = {name: distance(found[name], value) / scales[name] for name, value in reference.items()}
            off = {name: value for name, value in off.items() if not value < TOLERANCE}
            assert not off, (kind, "train" if train else "eval", off)


def _graphs(channels: int | list[int] = 3, edge_channels: int | list[int] | None = None) -> list[Data]:
    some = random_graphs(3, 6, seed=1, channels=channels, edge_channels=edge_channels)
    odd = random_graph(4, 3.0, channels=channels, edge_channels=edge_channels, loops=True, parallel=True, seed=2)
    return [*some, odd, *degenerate_graphs(channels, edge_channels).values()]


def _complete(nodes: int) -> Data:
    edges = [(u, v) for u in range(nodes) for v in range(nodes) if u != v]
    return Data(x=torch.ones(nodes, 3), edge_index=torch.tensor(edges).T)


def _star(leaves: int) -> Data:
    """A hub and some edges between its leaves; nodes of several kinds, or norms would see nearly constant channels."""
    generator = torch.Generator().manual_seed(0)
    out = torch.stack([torch.zeros(leaves, dtype=torch.long), torch.arange(1, leaves + 1)])
    some = torch.randint(1, leaves, (2, leaves), generator=generator)
    edges = torch.cat([out, some], 1)
    return Data(x=torch.randn(leaves + 1, 3, generator=generator), edge_index=torch.cat([edges, edges.flip(0)], 1))


def _model(kind: type[nn.Module], policy: enfa.Policy) -> nn.Module:
    torch.manual_seed(3)
    model = shaken(kind(policy.mark_channels).double())
    for module in model.modules():
        if isinstance(module, nn.Dropout):  # of which every plan has its own masks; see below
            module.p = 0.0
    return model


def _graphs_of(kind: type[nn.Module]) -> list[Data]:
    return _graphs([3, 2], [3, 2]) if kind is Molecules else _graphs()


@cache
def _written(name: str, molecules: bool) -> ExplicitBag:
    """The same for all models."""
    return ExplicitBag(_graphs_of(Molecules if molecules else Egos), EVERY[name])


ALL = [*MODELS, *ROOTED, Egos]


@pytest.mark.parametrize("name", EVERY)
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_models_give_what_explicit_subgraphs_give(kind: type[nn.Module], name: str) -> None:
    """Every model is trained with every policy; evaluated, where only the norms differ, it is with a third of them."""
    policy = EVERY[name]
    model, graphs = _model(kind, policy), _graphs_of(kind)
    if name not in (OWN if kind in ROOTED else WITH_ROOTS if kind is Egos else EVERY):
        with pytest.raises(ValueError, match=r"^Expected (a policy|every node to be)|does not say which node each"):
            make_plan(graphs, policy, model)
    else:
        third = (ALL.index(kind) + list(EVERY).index(name)) % 3 == 0
        assert_explicit(model, policy, graphs, _written(name, kind is Molecules), evaluated=third)


SPECIAL: dict[str, list[Data]] = {
    "equal features": [Data(x=torch.ones(g.num_nodes, 3), edge_index=g.edge_index) for g in random_graphs(4, 7, seed=5)],
    "complete": [_complete(2), _complete(4), _complete(6), _complete(6)],
    "directed": [
        Data(x=torch.ones(4, 3), edge_index=torch.tensor([[0, 1, 2, 2, 2], [1, 2, 3, 0, 2]])),
        Data(x=torch.eye(3), edge_index=torch.tensor([[0, 0, 1], [1, 1, 2]])),
    ],
    "a hub": [_star(70)],
    "nodes without edges": [Data(x=torch.eye(3), edge_index=torch.zeros(2, 0, dtype=torch.long))],
    "one graph without nodes": [
        Data(x=torch.zeros(0, 3), edge_index=torch.zeros(2, 0, dtype=torch.long)), random_graph(3, seed=4),
    ],
}  # fmt: skip


SHALLOW = [kind for kind in (*MODELS, *ROOTED) if kind.__name__ in ("Context", "Rooted", "Between")]


CASES = [
    (kind, name, special)
    for kind in ALL
    for name in ("mark", "mixed", "ego mark")
    for special in SPECIAL
    # Molecules want categories; the deep ones lose digits where one node has 70 times the others' values
    if kind is not Molecules and (name in OWN or kind not in (*ROOTED, Egos)) and (special != "a hub" or kind in SHALLOW)
]


@pytest.mark.parametrize(("kind", "name", "special"), CASES, ids=[f"{k.__name__}-{n}-{s}" for k, n, s in CASES])
def test_special_graphs(kind: type[nn.Module], name: str, special: str) -> None:
    """All are trained. Evaluated is every model on every kind of graphs, with one of the policies or the other."""
    names = [policy for model, policy, graphs in CASES if (model, graphs) == (kind, special)]
    evaluated = name == names[(ALL.index(kind) + list(SPECIAL).index(special)) % len(names)]
    assert_explicit(_model(kind, EVERY[name]), EVERY[name], SPECIAL[special], evaluated=evaluated)


def _drawn(seed: int, dropout: float = 0.0, least: int = 1) -> tuple[nn.Module, enfa.Policy, list[Data]]:
    """A model, a policy and graphs, of which all may be odd."""
    rng = random.Random(seed)
    name, edge = rng.choice(list(EVERY)), rng.choice([None, 2])
    options = {"edge_channels": edge, "loops": rng.random() < 0.4, "parallel": rng.random() < 0.4}
    graphs = random_graphs(rng.randint(least, least + 2), rng.randint(2, 6), seed=seed, **options)
    graphs += rng.sample(list(degenerate_graphs(3, edge).values()), rng.randint(0, 4))
    if rng.random() < 0.3:
        for graph in graphs:
            graph.x = torch.ones_like(graph.x)
    own = name in OWN
    roots = own or (name in EDGED and all(g.edge_index.shape[1] for g in graphs if g.num_nodes))
    return Drawn(seed, EVERY[name], edge or 0, rng.randint(1, 5), roots, own, dropout).double(), EVERY[name], graphs


@pytest.mark.parametrize("seed", range(60))
def test_drawn_models_give_what_explicit_subgraphs_give(seed: int) -> None:
    model, policy, graphs = _drawn(seed)
    try:
        assert_explicit(model, policy, graphs)
    except ValueError as error:  # PyTorch's, of the explicit subgraphs
        assert "more than 1 value per channel" in str(error)
        with pytest.raises(ValueError, match="Expected more than 1 of the"):
            model.train()(_plan(model, policy, graphs))


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_drawn_models_draw_the_same_masks_on_every_plan(seed: int) -> None:
    model, policy, graphs = _drawn(seed, dropout=0.3, least=3)
    if policy.edge_mark_channels and not any(step.edges for step in trace(model, graphs, policy).steps):
        with pytest.raises(ValueError, match="marks edges, but the model's conv does not read edge attributes"):
            assert_same_as_full(model, policy, graphs, modes=["train"])
    else:
        assert_same_as_full(model, policy, graphs, modes=["train"])


def test_gradients_of_features_give_what_explicit_subgraphs_give() -> None:
    graphs = random_graphs(4, 6, seed=1, edge_channels=2)
    model = Drawn(7, EVERY["edge marking"], 2, 5, False, False).double().eval()
    assert any(how == "edges" for _, _, how, _ in model.steps)
    found = []
    for make in (ExplicitBag, lambda g, p: make_plan(g, p, model, "full"), lambda g, p: make_plan(g, p, model)):
        copies = copy.deepcopy(graphs)
        for graph in copies:
            graph.x, graph.edge_attr = graph.x.double().requires_grad_(), graph.edge_attr.double().requires_grad_()
        model(make(copies, EVERY["edge marking"])).square().sum().backward()
        found.append([value.grad for g in copies for value in (g.x, g.edge_attr)])
    assert all(bool(grad.any()) for grad in found[0] if grad.numel())
    for one in found[1:]:
        torch.testing.assert_close(one, found[0], rtol=1e-10, atol=1e-12)
