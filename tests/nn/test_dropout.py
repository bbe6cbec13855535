"""Dropout on Rows: one mask for one identity."""

import pytest
import torch
from one_table import counted_rows
from torch import nn

import enfa
from enfa.plan.derived.identity import mix64
from enfa.testing import random_graphs


def _dropped(module: nn.Module, x: torch.Tensor, identity: torch.Tensor) -> torch.Tensor:
    return module(counted_rows(x, identity=identity)).value


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_masks_have_the_right_statistics(p: float) -> None:
    """200,000 draws: the share that is kept lies within 5 standard deviations, by row and by channel too."""
    torch.manual_seed(0)
    module, rows, channels = nn.Dropout(p), 4000, 50
    out = _dropped(module, torch.ones(rows, channels), torch.arange(rows))
    kept = out != 0
    assert torch.allclose(out[kept], torch.tensor(1 / (1 - p)))
    off = 5 * (p * (1 - p)) ** 0.5
    assert abs(float(kept.double().mean()) - (1 - p)) < off / (rows * channels) ** 0.5
    assert float((kept.double().mean(0) - (1 - p)).abs().max()) < off / rows**0.5
    assert float((kept.double().mean(1) - (1 - p)).abs().max()) < 1.5 * off / channels**0.5
    # neighbours in rows, channels and steps are uncorrelated
    again = _dropped(module, torch.ones(rows, channels), torch.arange(rows)) != 0
    for a, b in ((kept[1:], kept[:-1]), (kept[:, 1:], kept[:, :-1]), (kept, again)):
        both = (a.double() - (1 - p)) * (b.double() - (1 - p))
        assert abs(float(both.mean())) < 5 * p * (1 - p) / both.numel() ** 0.5


def test_one_identity_one_mask() -> None:
    torch.manual_seed(0)
    module = nn.Dropout(0.5)
    out = _dropped(module, torch.ones(3, 64), torch.tensor([7, 8, 7]))
    assert torch.equal(out[0], out[2]) and not torch.equal(out[0], out[1])


def test_every_call_draws_anew_by_pytorchs_generator() -> None:
    torch.manual_seed(0)
    module, x, identity = nn.Dropout(0.5), torch.ones(4, 64), torch.arange(4)
    state = torch.get_rng_state()
    first, second = _dropped(module, x, identity), _dropped(module, x, identity)
    assert not torch.equal(first, second)
    torch.set_rng_state(state)
    assert torch.equal(_dropped(nn.Dropout(0.5), x, identity), first)
    assert torch.equal(_dropped(nn.Dropout(0.5), x, identity), second)


def test_does_nothing_in_eval_and_at_zero() -> None:
    x = torch.randn(3, 4)
    assert _dropped(nn.Dropout(0.5).eval(), x, torch.arange(3)) is x
    assert _dropped(nn.Dropout(0.0), x, torch.arange(3)) is x


def test_gradients_pass_where_the_mask_lets_them() -> None:
    x = torch.ones(5, 8, requires_grad=True)
    out = _dropped(nn.Dropout(0.5), x, torch.arange(5))
    out.sum().backward()
    assert torch.equal(x.grad, out.detach())


@pytest.mark.parametrize("p", [-0.1, 1.1])
def test_refuses_impossible_probabilities(p: float) -> None:
    with pytest.raises(ValueError, match=f"Expected a dropout probability from 0 to 1, got {p}"):
        nn.functional.dropout(counted_rows(torch.ones(3, 4)), p)


def test_independent_masks_run_on_the_full_plan_only() -> None:
    graphs = random_graphs(3, 6, seed=1)
    model = enfa.DSGNN(3, 4, 2, 2, dropout=0.5, independent_dropout=True)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model, "distinct")
    assert plan.program.share == "dataset"  # no mask is shared, so nothing speaks against sharing rows in eval()
    with pytest.raises(ValueError, match="Expected the full plan for independent dropout masks: other plans share"):
        model(plan)
    full = enfa.make_plan(graphs, enfa.NodeMarking(), model, "full")
    assert not torch.equal(model(full), model(full))
    model.eval()
    assert torch.allclose(model(plan), model(full), atol=1e-5)


def test_independent_masks_differ_between_copies() -> None:
    torch.manual_seed(0)
    layer = enfa.DSGNN(3, 64, 2, 1, dropout=0.5, independent_dropout=True).layers[0]
    alike = counted_rows(torch.ones(2, 64), identity=torch.tensor([7, 7]), kind="full")
    layer.update = lambda *_: alike  # type: ignore[method-assign,assignment]
    out = layer(alike.bag, alike, None).value
    assert not torch.equal(out[0], out[1])


def test_mix64_is_one_to_one_and_spreads() -> None:
    values = torch.cat([torch.arange(20000), torch.arange(20000) << 40, -torch.arange(1, 20000)])
    mixed = mix64(values)
    assert len(mixed.unique()) == len(values.unique())
    bits = torch.stack([(mixed >> b) & 1 for b in range(64)]).double().mean(1)
    assert float((bits - 0.5).abs().max()) < 0.02
    assert not torch.equal(mix64(values, 1), mixed)
