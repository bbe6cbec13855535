import copy

import pytest
import torch
import torch.nn.functional as F
from one_table import counted_rows
from small_table import propagated, small_links
from torch import Tensor, nn

import enfa
from enfa.nn.bag import Rows
from enfa.nn.convs import CONVS, Conv, make_conv
from enfa.nn.convs.base import make_norm
from enfa.nn.convs.gin import GIN


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


def test_a_conv_must_define_messages() -> None:
    with pytest.raises(TypeError, match="Conv must define messages"):
        propagated(Conv(), torch.zeros(4, 3), torch.zeros(2, 2))


def test_a_conv_takes_edge_attributes_and_nothing_else() -> None:
    h, conv = counted_rows(torch.ones(4, 3)), GIN(3, 4, 0, "batch")
    with pytest.raises(TypeError, match="GIN takes edge_attr and nothing else, got edge_weight"):
        h.bag.propagate(conv, h, edge_weight=h)
    with pytest.raises(TypeError, match=r"Expected edge_attr to be made from bag.edge_attr or bag.edge_mark, got"):
        h.bag.propagate(conv, h, h)


class _Squared(GIN):
    def forward(self, *args) -> Rows:  # type: ignore[no-untyped-def]
        return super().forward(*args).square()


class _SquaredUpdate(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).square()


def _squared(how: str) -> GIN:
    """GIN whose results are squared in some way."""
    conv = (_Squared if how == "conv" else GIN)(3, 4, 0, "batch")
    if how == "update":
        conv.update = _SquaredUpdate(*conv.update)  # type: ignore[misc]
    if how.startswith("one"):
        module = conv if how == "one conv" else conv.update[3]  # type: ignore[index]
        forward = module.forward
        module.forward = lambda *args: forward(*args).square()  # type: ignore[method-assign]
    return conv


@pytest.mark.parametrize("how", ["conv", "update", "one conv", "one linear"])
def test_a_norm_after_a_conv_sees_what_is_made_of_it(how: str) -> None:
    torch.manual_seed(0)
    conv, norm, x = _squared(how).double(), nn.BatchNorm1d(4).double(), torch.randn(4, 3, dtype=torch.float64)
    first, inner, _, last = conv.update  # type: ignore[misc]
    layer = copy.deepcopy(inner)
    found = propagated(conv, x, x, norm)  # three rows that count once each
    messages = GIN.messages(conv, x, small_links(), None, None)
    plain = F.linear(layer(counted_rows(first(messages))).value.relu(), last.weight, last.bias)
    torch.testing.assert_close(found, norm(plain.square()), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("place", [0, 3])
def test_any_module_may_stand_for_a_linear(place: int) -> None:
    conv, x = GIN(4, 4, 0, "batch").double(), torch.randn(4, 4, dtype=torch.float64)
    conv.update[place] = nn.Identity()  # type: ignore[index,operator]
    messages = GIN.messages(conv, x, small_links(), None, None)
    first, inner, _, last = copy.deepcopy(conv.update)  # type: ignore[misc]
    torch.testing.assert_close(propagated(conv, x, x), last(inner(counted_rows(first(messages))).value.relu()))
