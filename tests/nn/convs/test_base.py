import pytest
import torch
from torch import nn

import enfa
from enfa.nn.convs import CONVS, Conv, make_conv
from enfa.nn.convs.base import make_norm


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
