import pytest
import torch
from drawn import shaken
from every_pair import Pairs, assert_formula, mean, total
from torch import Tensor

import enfa
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs


def _graphs(edges: int | list[int] | None, loops: bool = False) -> list:
    some = random_graphs(3, 7, channels=[5], edge_channels=edges, loops=loops, parallel=True)
    return some + [g for name, g in degenerate_graphs([5], edges).items() if loops or "loop" not in name]


def _model(policy: enfa.Policy, edges: int | list[int] | None, conv: str = "gat", **options: object) -> enfa.Subgraphormer:
    torch.manual_seed(2)
    first = ([5], 12, 2, 2, conv, 2)
    return shaken(enfa.Subgraphormer(*first, edge_channels=edges, mark_channels=policy.mark_channels, **options))


@pytest.mark.parametrize("policy", [enfa.NodeMarking(distances=2), enfa.EgoNets(1, mark=True)], ids=str)
@pytest.mark.parametrize(("conv", "edges"), [("gat", [4, 2]), ("gatv2", None), ("transformer", 2)])
def test_same_as_full(conv: str, edges: int | list[int] | None, policy: enfa.Policy) -> None:
    assert_same_as_full(_model(policy, edges, conv), policy, _graphs(edges, conv == "transformer"), steps=1)


@pytest.mark.parametrize(
    "options",
    [
        {"readout": "root", "norm": "layer", "residual": True},
        {"readout": "node", "jk": "concat", "bag": "sum"},
        {"jk": "sum", "norm": None, "dropout": 0.3},
    ],
    ids=str,
)
def test_options_are_the_same_as_full(options: dict) -> None:
    policy = enfa.NodeMarking(distances=1)
    assert_same_as_full(_model(policy, [4, 2], **options), policy, _graphs([4, 2]))


def _formula(model: enfa.Subgraphormer, pairs: Pairs) -> Tensor:
    """The docstring's, over all pairs, with PyG's convs on their two graphs."""
    h = model.encoder.embed(pairs.x) + model.encoder.mark.weight.T[pairs.hop.clamp(max=3)]
    hot = torch.cat([torch.eye(4)[pairs.attr[:, 0]], torch.eye(2)[pairs.attr[:, 1]]], 1).double()
    for layer in model.layers:
        near, far = ((hot @ bond[0].weight.T).relu() for bond in layer.bonds)
        seen = [layer.conv(h, pairs.within, near), layer.between(h, pairs.between, far)]
        seen.append(layer.point((1 + layer.eps) * h + h[pairs.own]))
        h = layer.norm(layer.mix(torch.cat(seen, 1))).relu()
    pooled = total(h, pairs.sub, pairs.num_nodes)
    return model.head(mean(pooled, pairs.graph[pairs.sub == pairs.node], pairs.num_graphs))


@pytest.mark.parametrize("conv", ["gat", "gatv2", "transformer"])
def test_is_the_formula(conv: str) -> None:
    policy = enfa.NodeMarking(distances=2)
    assert_formula(_model(policy, [4, 2], conv), policy, _graphs([4, 2]), _formula)


def test_nonsense_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^Expected hidden_channels to be a multiple of 3 heads = 12, got 32$"):
        enfa.Subgraphormer(3, 32, 2, 2)
    with pytest.raises(ValueError, match=r"^Expected conv to be one of gat, gatv2, transformer, got 'gin'"):
        enfa.Subgraphormer(3, 12, 2, 2, "gin")
    with pytest.raises(ValueError, match=r"^Expected heads to be an integer >= 1, got 0$"):
        enfa.Subgraphormer(3, 12, 2, 2, heads=0)


def test_graphs_with_loops_are_refused_where_attention_has_its_own() -> None:
    policy = enfa.NodeMarking()
    with pytest.raises(ValueError, match="self-loop"):
        enfa.make_plan(_graphs(None, loops=True), policy, _model(policy, None))
