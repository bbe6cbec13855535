"""Terms that are computed beside each other are those that are computed one after the other."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

import enfa
from enfa.nn import Step
from enfa.nn.bag import Bag, branches
from enfa.nn.bag.branches import Branches, added, computed, fan, plus_spread
from enfa.nn.convs import make_conv
from enfa.nn.cuda import side_stream
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

cuda = pytest.mark.skipif(not torch.cuda.is_available(), reason="streams and CUDA graphs need a GPU")


class Terms(nn.Module):
    """Every way to bring terms of a layer together; ``plain``: the same with the bag's verbs and ``+``."""

    def __init__(self, plain: bool = False) -> None:
        super().__init__()
        self.plain, self.eps = plain, nn.Parameter(torch.full((1,), 0.3))
        self.start, self.first, self.second = (nn.Linear(4, 6), nn.Linear(6, 6), nn.Linear(6, 6))
        self.conv = make_conv("gin", 6, 6, 0, "batch")
        self.head = nn.Linear(6, 2)

    def layer(self, bag: Bag, h: enfa.Rows) -> enfa.Rows:
        one, two, three, four, five = [h] * 5 if self.plain else fan(h, 5)
        with Branches(h, self.conv) as beside:
            with beside():
                own = computed(self.first(bag.diagonal(one)))
            with beside():
                of_subgraph = computed(self.second(bag.pool(two, "mean")))
            inside = computed(bag.propagate(self.conv, three))
        if self.plain:
            pairs = four + bag.spread(own)
            scaled = pairs * self.eps + bag.spread(of_subgraph)
            return (inside + scaled + five).tanh()
        scaled = plus_spread(plus_spread(four, own), of_subgraph, self.eps)
        return added(inside, scaled, five).tanh()

    def forward(self, bag: Bag) -> Tensor:
        h = self.start(torch.cat([bag.x, bag.mark], 1))
        for _ in range(2):
            h = self.layer(bag, h)
        return self.head(bag.pool(bag.pool(h, "mean"), "mean"))


def test_terms_are_those_of_the_verbs() -> None:
    graphs = random_graphs(4, 7) + list(degenerate_graphs(3).values())
    torch.manual_seed(0)
    model = Terms().double()
    plain = Terms(plain=True).double()
    plain.load_state_dict(model.state_dict())
    found = []
    for one in (model, plain):
        out = one(enfa.make_plan(graphs, enfa.NodeMarking(), one))
        found.append([out, *torch.autograd.grad(out.square().sum(), list(one.parameters()))])
    torch.testing.assert_close(*found, rtol=1e-12, atol=1e-12)
    assert_same_as_full(model, enfa.NodeMarking(), graphs)


def test_a_norm_under_two_names_is_shared() -> None:
    """Two streams would write its statistics at the same time."""
    layer = enfa.SUN([5], 8, 1, 1, "gine", edge_channels=[4]).layers[0]
    assert branches._disjoint(tuple(layer._modules.values()))
    layer.root_norm = layer.norm
    assert not branches._disjoint(tuple(layer._modules.values()))


@cuda
@pytest.mark.parametrize("mixed", [None, torch.bfloat16])
@pytest.mark.parametrize("unshared", [None, 2])
@pytest.mark.parametrize("name", ["sswl", "sun", "dss", "dss, dropout", "terms"])
def test_captured_is_eager_bit_for_bit(
    name: str, unshared: int | None, mixed: torch.dtype | None, monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    """Batches so large that streams do run beside each other, and steps enough for memory to be written into too early; of
    weights' gradients, which are computed on a stream of their own, too."""
    monkeypatch.setattr(side_stream, "MOST", 2**24)
    torch.manual_seed(0)
    edges = {"edge_channels": [4], "mark_channels": 3}
    dropping = partial(enfa.DSSGNN, dropout=0.3)
    make = {"sswl": enfa.SSWLGNN, "sun": enfa.SUN, "dss": enfa.DSSGNN, "dss, dropout": dropping}
    model = Terms() if name == "terms" else make[name]([5], 96, 2, 4, "gine", **edges)
    graphs = random_graphs(96, 24, channels=3 if name == "terms" else [5], edge_channels=None if name == "terms" else [4])
    policy = enfa.NodeMarking() if name == "terms" else enfa.NodeMarking(distances=1)
    plan = enfa.compile(graphs, policy, model, progress=False, unshared=unshared)[:]
    plan.y = torch.arange(len(graphs)) % 2
    states = []
    drops = name == "dss, dropout"  # an eager step draws its masks from another generator than a captured one
    for capture in (True, drops, True):
        torch.manual_seed(1)
        there = copy.deepcopy(model).cuda().train()
        optimiser = torch.optim.Adam(there.parameters(), lr=1e-3, fused=True, capturable=True)
        step = Step(there, optimiser, F.cross_entropy, capture=capture, autocast=mixed)
        staged = step.stage(plan)
        losses = [step(staged).clone() for _ in range(12)]
        assert any(step.captured.values()) == capture
        states.append([*losses, *there.state_dict().values()])
    for other in states[1:]:
        for value, reference in zip(other, states[0], strict=True):
            assert torch.equal(value, reference)
