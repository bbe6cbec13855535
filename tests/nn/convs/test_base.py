import pytest
import torch
import torch.nn.functional as F
from torch import nn

import enfa
from enfa.nn.convs import CONVS, Conv, make_conv
from enfa.nn.convs.base import MLP, make_norm
from enfa.nn.convs.gin import GIN
from enfa.nn.rows import Rows, rows_in_flight
from enfa.plan.table import Links


def test_unknown_convs_list_the_known_ones() -> None:
    message = r"Expected conv to be one of gin, gine, graphconv, gcn, got 'gni' \(did you mean 'gin'\?\)"
    with pytest.raises(ValueError, match=message):
        make_conv("gni", 3, 4, 0, "batch")
    with pytest.raises(TypeError, match=r"Expected conv to be a name or a callable \(in, out\) -> conv, got 3"):
        make_conv(3, 3, 4, 0, "batch")


def test_unknown_norms_list_the_known_ones() -> None:
    with pytest.raises(ValueError, match="Expected norm to be one of batch, layer, None, got 'graph'"):
        make_norm("graph", 4)
    kinds = [type(make_norm(norm, 4)) for norm in ("batch", "layer", None)]
    assert kinds == [enfa.CountedBatchNorm, nn.LayerNorm, nn.Identity]


@pytest.mark.parametrize("name", CONVS)
def test_every_conv_says_what_it_reads(name: str) -> None:
    conv = make_conv(name, 3, 4, 2, "batch")
    assert isinstance(conv, Conv)
    assert (conv.reads_edges, conv.reads_degrees) == (name == "gine", name == "gcn")
    assert conv.needs_edges == (name == "gine")


def test_a_conv_must_define_hidden() -> None:
    with pytest.raises(TypeError, match="Conv must define hidden"):
        Conv(1, 1, 0, None)(torch.zeros(0, 1), None, None, None)


class _Squared(GIN):
    def forward(self, *args) -> torch.Tensor:
        return super().forward(*args).square()


class _SquaredMLP(MLP):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x).square()


def _squared(how: str) -> GIN:
    """GIN whose results somebody squares."""
    conv = (_Squared if how == "conv" else GIN)(3, 4, 0, "batch")
    if how == "MLP":
        conv.mlp = _SquaredMLP(3, 4, "batch")
    if how.startswith("one"):
        module = conv if how == "one conv" else conv.mlp[3]
        forward = module.forward
        module.forward = lambda *args: forward(*args).square()  # type: ignore[method-assign]
    return conv


@pytest.mark.parametrize("how", ["conv", "MLP", "one conv", "one linear"])
def test_a_norm_behind_a_conv_sees_what_somebody_makes_of_it(how: str) -> None:
    torch.manual_seed(0)
    conv, norm, none = _squared(how), enfa.CountedBatchNorm(4), torch.zeros(0, dtype=torch.int64)
    links, copies = Links(torch.arange(5), none.new_zeros(6), none, none), torch.tensor([3, 1, 2, 1, 1])
    rows = torch.randn(5, 3)
    with rows_in_flight(Rows(copies, 8, lambda: copies, False)):
        found = conv.normed(norm, False, rows, links, None, None)
        first, inner, _, last = conv.mlp
        plain = F.linear(inner(first(rows)).relu(), last.weight, last.bias)
        torch.testing.assert_close(found, norm(plain.square()))


@pytest.mark.parametrize("place", [0, 3])
def test_any_module_may_stand_for_a_linear(place: int) -> None:
    conv, norm, none = GIN(4, 4, 0, "batch"), enfa.CountedBatchNorm(4), torch.zeros(0, dtype=torch.int64)
    conv.mlp[place] = nn.Identity()
    links, copies = Links(torch.arange(5), none.new_zeros(6), none, none), torch.ones(5, dtype=torch.int64)
    rows = torch.randn(5, 4)
    with rows_in_flight(Rows(copies, 5, lambda: copies, False)):
        found = conv.normed(norm, False, rows, links, None, None)
        torch.testing.assert_close(found, norm(conv(rows, links, None, None)))
