"""The contract: every plan gives what the full plan gives.

One tester for every policy, conv, context, readout, jumping knowledge, norm, dropout and feature type. All pairs of
values occur (see ``support/covering.py``); hypothesis draws from the whole product, and the graphs too.
"""

import copy
from functools import cache

import pytest
import torch
from cases import (
    EDGE_CHANNELS,
    EVERY,
    EVERY_FACTORS,
    FACTORS,
    NODE_CHANNELS,
    POLICIES,
    ROOTED,
    allowed,
    allowed_every,
    conv_of,
    live_model,
    model_of,
    modes_of,
)
from covering import all_pairs, covering, pairs_of
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import graph_lists
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa
from enfa.graphs import check_graphs
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graph, random_graphs

CASES = covering(FACTORS, allowed)
EVERY_CASES = covering(EVERY_FACTORS, allowed_every)
CONTEXTS = FACTORS["context"]
PLAIN = {
    "conv": "gin", "policy": "mark", "context": "none", "readout": "sum", "jk": "last", "norm": "batch",
    "nodes": "float", "edges": "none", "bag": "mean", "dropout": 0.0, "residual": False, "share": None,
}  # fmt: skip


def _name(case: dict) -> str:
    return " ".join(str(v) for v in case.values())


def _graphs(case: dict, seed: int) -> list[Data]:
    """Random graphs and all degenerate ones."""
    channels, edge_channels = NODE_CHANNELS[case["nodes"]], EDGE_CHANNELS[case["edges"]]
    options = {"channels": channels, "edge_channels": edge_channels, "loops": True, "parallel": True}
    few = random_graphs(3, 8, seed=seed, **options)
    return few + list(degenerate_graphs(channels, edge_channels, seed).values())


def _results(model: nn.Module, graphs: list[Data], policy: enfa.Policy, kind: str) -> dict[str, Tensor]:
    """Outputs, gradients and buffers of one training step, each as one vector."""
    model = copy.deepcopy(model).train()
    torch.manual_seed(0)  # for the dropout after pooling
    out = model(enfa.make_plan(graphs, policy, model, kind))
    (out.square() + out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum().backward()
    buffers = [b.detach() for b in model.buffers() if b.is_floating_point()]
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    found = {"output": [out.detach()], "gradient": grads, "buffer": buffers}
    return {name: torch.cat([v.double().flatten() for v in parts]) for name, parts in found.items() if parts}


def test_every_pair_of_values_occurs() -> None:
    covered = set().union(*map(pairs_of, CASES))
    assert all_pairs(FACTORS, allowed) == covered
    assert all(allowed(case) for case in CASES)
    assert len(CASES) < 100
    assert all_pairs(EVERY_FACTORS, allowed_every) == set().union(*map(pairs_of, EVERY_CASES))
    assert all(allowed_every(case) for case in EVERY_CASES)


def test_every_policy_and_each_of_its_parameters_is_here() -> None:
    """A parameter counts once two policies differ in it."""
    assert {type(p) for p in EVERY.values()} >= set(enfa.edits.POLICIES.values())
    for policy in enfa.edits.POLICIES.values():
        same = [vars(p) for p in EVERY.values() if type(p) is policy]
        for name in set(same[0]) - {"seed", "greedy", "hops", "bins", "max_subgraphs", "pairs"}:
            assert len({repr(params[name]) for params in same}) > 1, f"{policy.__name__}: {name}"
    graphs = check_graphs(_graphs(PLAIN, 0))
    assert {name for name, policy in EVERY.items() if policy.edits(graphs).root is not None} == ROOTED


@pytest.mark.parametrize("number", range(len(EVERY_CASES)), ids=lambda i: _name(EVERY_CASES[i]))
def test_every_policy_is_the_same_as_full(number: int) -> None:
    """As below, with fewer steps: every policy with every conv, context, readout, jumping knowledge, norm, …"""
    case = EVERY_CASES[number]
    graphs = _graphs(case, number)
    model = live_model(case, graphs)
    assert_same_as_full(model, EVERY[case["policy"]], graphs, modes=modes_of(model), steps=1)


@cache
def _live(number: int) -> tuple[nn.Module, list[Data]]:
    """The model and the graphs of a case, for both tests that take them; neither changes them."""
    graphs = _graphs(CASES[number], number)
    return live_model(CASES[number], graphs), graphs


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: _name(CASES[i]))
def test_same_as_full(number: int) -> None:
    """Outputs, gradients and buffers in train() and eval(), and all weights after some Adam steps."""
    model, graphs = _live(number)
    assert_same_as_full(model, POLICIES[CASES[number]["policy"]], graphs, steps=2 if number % 10 else 20)


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: _name(CASES[i]))
def test_float32_comes_as_close_as_full_does(number: int) -> None:
    """The yardstick is ``full`` in float64. The floor is 32 units in the last place of float32: on graphs this small
    both plans err by a few, and which of the two errs by more is chance."""
    policy = POLICIES[CASES[number]["policy"]]
    model, graphs = _live(number)
    exact = _results(copy.deepcopy(model).double(), graphs, policy, "full")
    full, distinct = (_results(model, graphs, policy, kind) for kind in ("full", "distinct"))
    floor = 32 * torch.finfo(torch.float32).eps
    for name, reference in exact.items():
        scale = float(reference.norm()) or 1.0
        off_full, off_distinct = (float((found[name] - reference).norm()) / scale for found in (full, distinct))
        assert off_distinct <= max(off_full, floor), name


@pytest.mark.parametrize("kind", ["full", "distinct"])
@pytest.mark.parametrize("policy", ["mark", "edge"])
def test_float32_stays_close_over_many_rows(policy: str, kind: str) -> None:
    """Full adds up 200 x 200 rows, and more for edges: one after the other they would be off by hundreds of units."""
    graphs = [random_graph(200, 2.5, channels=2, seed=1)]
    model = model_of({**PLAIN, "jk": "concat"})
    exact = _results(copy.deepcopy(model).double(), graphs, POLICIES[policy], "full")
    found = _results(model, graphs, POLICIES[policy], kind)
    for name in ("output", "gradient", "buffer"):
        assert (found[name] - exact[name]).norm() < 32 * torch.finfo(torch.float32).eps * exact[name].norm(), name


@pytest.mark.parametrize("policy", EVERY)
@given(data=st.data())
def test_same_as_full_on_any_graphs(policy: str, data: st.DataObject) -> None:
    """Any case of the whole product, on graphs that hypothesis draws."""
    case = {name: data.draw(st.sampled_from(values), label=name) for name, values in EVERY_FACTORS.items()}
    case["policy"] = policy
    assume(allowed_every(case))
    channels, edge_channels = NODE_CHANNELS[case["nodes"]], EDGE_CHANNELS[case["edges"]]
    graphs = data.draw(graph_lists(channels, edge_channels), label="graphs")
    # A channel that is constant over the batch is divided by sqrt(eps) in every BatchNorm, and its rounding error with
    # it, on every plan. One graph with all sorts of rows keeps channels from being constant.
    graphs.append(random_graph(7, channels=channels, edge_channels=edge_channels, seed=3))
    model = model_of(case, data.draw(st.integers(1, 4)))
    assert_same_as_full(model, EVERY[policy], graphs, modes=modes_of(model))


@pytest.mark.parametrize("policy", ["mark", "delete", "isolate", "two marks", "mixed"])
@given(data=st.data())
def test_same_as_full_on_directed_graphs(policy: str, data: st.DataObject) -> None:
    """An ego net along the edges need not hold all sources of its nodes: none may be lost."""
    conv = data.draw(st.sampled_from(["gin", "gcn", "gine", "GraphConv"]))
    context = data.draw(st.sampled_from(CONTEXTS))
    case = {**PLAIN, "conv": conv, "context": context, "policy": policy, "norm": "layer"}
    case["edges"] = "float" if conv == "gine" else "none"
    graphs = data.draw(graph_lists(2, EDGE_CHANNELS[case["edges"]], directed=True))
    assert_same_as_full(model_of(case, data.draw(st.integers(1, 3))), POLICIES[policy], graphs)


CHANGES: list[dict] = [
    {}, {"readout": "max", "norm": "none"}, {"conv": "gcn", "context": "dss"}, {"context": "mpnn", "readout": "mean"},
]  # fmt: skip


@pytest.mark.parametrize("policy", EVERY)
@pytest.mark.parametrize("graph", degenerate_graphs())
def test_degenerate_graphs_singly(graph: str, policy: str) -> None:
    """Alone, a degenerate graph may leave BatchNorm without two rows to average: then no plan runs, as in PyTorch.

    Every policy meets every change on some graphs, and every graph does with some policies. Where a model can be trained, it
    is evaluated, too, for a third of these pairs.
    """
    number = list(EVERY).index(policy) + list(degenerate_graphs()).index(graph)
    change = CHANGES[number % len(CHANGES)]
    case = {**PLAIN, **change, "policy": policy}
    if EVERY[policy].edge_mark_channels:
        case["conv"] = "gine"
    model, alone = model_of(case, 2), [degenerate_graphs(2)[graph]]
    plans = [enfa.make_plan(alone, EVERY[policy], model, kind) for kind in ("full", "ego", "distinct")]
    counted = {plan.num_pairs for plan in plans}
    assert len(counted) == 1
    nodes = alone[0].num_nodes if case["context"] in ("dss", "mpnn") else 0
    trains = case["norm"] != "batch" or 1 not in (*counted, nodes)
    modes = ["train"] * trains + ["eval"] * (not trains or number % 3 == 0)
    assert_same_as_full(model, EVERY[policy], alone, modes=modes)
    if not trains:
        for plan in plans:
            with pytest.raises(ValueError, match=r"^Expected more than 1 .* to compute BatchNorm statistics, got 1: put"):
                model.train()(plan)


@pytest.mark.parametrize("policy", ["mark", "delete", "isolate", "edge"])
@pytest.mark.parametrize("layers", [1, 2, 4])
def test_ego_is_exact_for_gcn(policy: str, layers: int) -> None:
    """Border nodes of an ego net lack neighbours, but their degrees are those of the subgraph. Graphs are long enough
    to have a border."""
    ring = random_graph(0, channels=2)
    ring.x = torch.arange(32).remainder(3).float().reshape(16, 2)
    there = torch.stack([torch.arange(16), torch.arange(1, 17) % 16])
    ring.edge_index = torch.cat([there, there.flip(0)], 1)
    graphs = [ring, random_graph(30, 2.1, channels=2, seed=5)]
    model = model_of({**PLAIN, "conv": "gcn", "residual": True}, layers)
    assert_same_as_full(model, POLICIES[policy], graphs)


class EdgeMarks(enfa.Policy):
    """Marks every edge in one direction, and deletes the next."""

    marks = ((0.0,),)
    edge_marks = ((0.0, 0.0), (1.0, 0.0), (0.0, 1.0))

    def bag(self, graph: enfa.edits.GraphView) -> list[enfa.Subgraph]:
        edges = graph.edge_index.shape[1]
        bag = [enfa.Subgraph().mark_edge(e, 1 + e % 2) for e in range(edges)]
        return [one.delete_edge((e + 1) % edges) if edges > 1 else one for e, one in enumerate(bag)]


@pytest.mark.parametrize("edges", ["float", "categorical"])
@pytest.mark.parametrize("conv", ["gine", "GATv2Conv"])
def test_marked_edges(conv: str, edges: str) -> None:
    case = {**PLAIN, "conv": conv, "edges": edges}
    graphs = _graphs(case, 0)
    channels = EDGE_CHANNELS[edges]
    width = 6 + 2 if isinstance(channels, list) else channels + 2
    torch.manual_seed(0)
    model = enfa.DSGNN(
        2, 6, 2, 3, conv_of(conv, width), edge_channels=channels, edge_mark_channels=2, norm="layer", jk="concat"
    )
    assert_same_as_full(model, EdgeMarks(), graphs, steps=3)
