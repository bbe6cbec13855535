"""Tables of shards side by side, and graphs taken out of them: plans of both are exact."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pytest
import torch
from bag_models import MODELS, ROOTED, Egos, Molecules
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch.shards.extract import extracted
from enfa.batch.shards.reading.join import joined
from enfa.testing import degenerate_graphs, random_graphs

Exact = Callable[[nn.Module, enfa.Bag, list[Data], enfa.Policy], None]


def _parts(graphs: list[Data], sizes: list[int], policy: enfa.Policy, model: nn.Module, **options) -> list:
    ends = np.cumsum([0, *sizes])
    assert ends[-1] == len(graphs)
    return [
        enfa.compile(graphs[a:b], policy, model, progress=False, **{"unshared": None, **options})
        for a, b in itertools.pairwise(ends)
    ]


def _unlabelled(*lists: list[Data]) -> list[Data]:
    return [graph.clone().update({"y": None}) for some in lists for graph in some]


def test_a_batch_of_several_shards(
    graphs: list[Data], new_graphs: list[Data], model: nn.Module, policy: enfa.Policy, assert_exact: Exact
) -> None:
    """Which have other kinds of features, edges and marks each, as they first met them."""
    every = _unlabelled(new_graphs[3:], graphs, new_graphs[:3])
    parts = _parts(every, [3, 9, len(every) - 15, 3], policy, model)
    both = joined(parts)
    assert len(both) == len(every) and len(parts[0].rows[0].keys)
    for chosen in ([0], [len(every) - 1, 4, 2], list(range(len(every)))[::-1]):
        assert_exact(model, both[chosen], [every[g] for g in chosen], policy)
    some = np.array([len(every) - 2, 11, 3, 0, 14])
    less = extracted(both, some)
    assert len(less) == 5 and sum(less.cost().rows) < sum(both.cost().rows)
    plan = less.plan([1, 4, 0], places=some[[1, 4, 0]])
    assert_exact(model, plan, [every[g] for g in some[[1, 4, 0]]], policy)


@pytest.mark.parametrize("kind", [*MODELS, *ROOTED, Egos], ids=lambda k: k.__name__)
@pytest.mark.parametrize("how", ["shared", "unshared", "planned"])
def test_models_of_ones_own(kind: type[nn.Module], how: str, assert_exact: Exact) -> None:
    """Roots, contexts, several pools; rows that are not shared from some step on; batches that are planned anew."""
    channels, edges = ([3, 2], [3, 2]) if kind is Molecules else (3, None)
    graphs = random_graphs(9, 8, seed=1, channels=channels, edge_channels=edges)
    graphs += list(degenerate_graphs(channels, edges).values())
    torch.manual_seed(0)
    model, policy = kind().double(), enfa.NodeMarking()
    options = {"shared": {}, "unshared": {"unshared": 1}, "planned": {"ahead": False}}[how]
    parts = _parts(graphs, [6, 1, len(graphs) - 7], policy, model, **options)
    both = joined([*parts[:2], extracted(parts[2], np.arange(len(parts[2]))[::-1].copy())], consume=True)
    order = [*range(7), *reversed(range(7, len(graphs)))]
    chosen = [5, 12, 2, 9, 6]
    places = np.array([order[g] for g in chosen])
    assert_exact(model, both.plan(chosen, places=places), [graphs[g] for g in places], policy)


def test_marks_that_shards_meet_one_by_one(assert_exact: Exact) -> None:
    """A policy that marks edges by degrees has other marks for other graphs."""
    policy, model = enfa.EdgeMarking("degrees", bins=3), enfa.DSGNN(3, 6, 2, 2, "gine", edge_mark_channels=4).double()
    graphs = random_graphs(9, 8, seed=1)
    parts = _parts(graphs, [2, 3, 4], policy, model)
    assert len({len(part.sources.arrays["edge_marks"]) for part in parts}) > 1
    assert_exact(model, joined(parts)[[8, 0, 3, 5]], [graphs[g] for g in (8, 0, 3, 5)], policy)
