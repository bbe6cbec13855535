"""CountedBatchNorm against torch.nn.BatchNorm1d on the rows written out as often as they count."""

import copy

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from one_table import counted_rows
from torch import Tensor, nn

from enfa import CountedBatchNorm


def _counted(module: nn.Module, x: Tensor, copies: Tensor) -> Tensor:
    return module(counted_rows(x, copies)).value


OPTIONS = [
    {},
    {"momentum": None},
    {"momentum": 0.7, "eps": 1e-3},
    {"affine": False},
    {"track_running_stats": False},
    {"affine": False, "track_running_stats": False},
]


def _pair(options: dict, channels: int = 3) -> tuple[nn.BatchNorm1d, CountedBatchNorm]:
    torch.manual_seed(0)
    ordinary = nn.BatchNorm1d(channels, dtype=torch.float64, **options)
    if ordinary.affine:
        nn.init.normal_(ordinary.weight), nn.init.normal_(ordinary.bias)
    return ordinary, CountedBatchNorm.convert(copy.deepcopy(ordinary))


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_is_batchnorm_on_repeated_rows(options: dict, train: bool) -> None:
    """Outputs, gradients of input and parameters, and buffers, over several steps; rows that count 0 are there too."""
    ordinary, counted = _pair(options)
    ordinary.train(train), counted.train(train)
    draw = torch.Generator().manual_seed(1)
    for _ in range(3):
        x = torch.randn(6, 3, dtype=torch.float64, generator=draw).requires_grad_()
        copies = torch.tensor([3, 1, 0, 4, 2, 0])
        weight = torch.randn(6, 3, dtype=torch.float64, generator=draw)
        written_out = x.repeat_interleave(copies, 0)
        expected = ordinary(written_out)
        found = _counted(counted, x, copies)
        assert torch.allclose(found.repeat_interleave(copies, 0), expected, rtol=1e-12, atol=1e-12)
        parameters = [x, *ordinary.parameters()]
        grads = torch.autograd.grad((expected * weight.repeat_interleave(copies, 0)).sum(), parameters)
        # the loss of the distinct rows counts each as often as it occurs
        mine = torch.autograd.grad((found * weight * copies[:, None]).sum(), [x, *counted.parameters()])
        for a, b in zip(mine, grads, strict=True):
            assert torch.allclose(a, b, rtol=1e-10, atol=1e-12)
        for (name, a), b in zip(counted.named_buffers(), ordinary.buffers(), strict=True):
            assert torch.allclose(a.double(), b.double(), rtol=1e-12, atol=0), name


@given(st.lists(st.integers(0, 4), min_size=1, max_size=8), st.integers(0, 1000))
def test_any_counts(counts: list[int], seed: int) -> None:
    copies = torch.tensor(counts)
    assume(int(copies.sum()) > 1)
    ordinary, counted = _pair({})
    x = torch.randn(len(counts), 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    found = _counted(counted, x, copies).repeat_interleave(copies, 0)
    # where all rows are one row, its variance is 0 but for rounding, and eps alone divides
    assert torch.allclose(found, ordinary(x.repeat_interleave(copies, 0)), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("affine", [True, False])
def test_gradcheck(affine: bool) -> None:
    _, counted = _pair({"affine": affine})
    copies = torch.tensor([2, 1, 0, 3])
    x = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    torch.autograd.gradcheck(lambda x: _counted(counted, x, copies), x)


def test_is_ordinary_on_tensors() -> None:
    ordinary, counted = _pair({})
    x = torch.randn(5, 3, dtype=torch.float64)
    assert torch.equal(counted(x), ordinary(x))
    assert torch.equal(counted.running_var, ordinary.running_var)
    cube = torch.randn(5, 3, 4, dtype=torch.float64)
    assert torch.equal(counted(cube), ordinary(cube))


def test_a_single_pair_has_no_statistics() -> None:
    _, counted = _pair({})
    with pytest.raises(ValueError, match=r"Expected more than 1 of the pairs to compute BatchNorm statistics, got 1"):
        _counted(counted, torch.randn(2, 3, dtype=torch.float64), torch.tensor([0, 1]))


def test_nothing_at_all_leaves_the_buffers_alone() -> None:
    _, counted = _pair({})
    before = counted.running_mean.clone()
    for number, rows in enumerate((0, 3)):
        out = _counted(counted, torch.ones(rows, 3, dtype=torch.float64), torch.zeros(rows, dtype=torch.long))
        assert out.shape == (rows, 3) and bool(out.isfinite().all())
        assert int(counted.num_batches_tracked) == number + 1
    assert torch.equal(counted.running_mean, before) and bool(counted.running_var.isfinite().all())


@pytest.mark.parametrize("rows", [6, 700], ids=["few", "blocks"])
@pytest.mark.parametrize("behind", [False, True], ids=["norm", "linear and norm"])
def test_what_a_row_holds_that_nobody_counts_is_of_no_account(rows: int, behind: bool) -> None:
    """Statistics, outputs and gradients are those of the other rows; it comes out as the bias and has no gradient."""
    torch.manual_seed(0)
    linear, norm = nn.Linear(3, 3).double(), _pair({})[1]
    x, weight = torch.randn(rows, 3, dtype=torch.float64), torch.randn(rows, 3, dtype=torch.float64)
    copies = torch.randint(1, 5, (rows,))
    copies[[1, 4, rows - 1]] = 0
    spoilt = x.clone()
    spoilt[1], spoilt[4], spoilt[rows - 1] = torch.nan, torch.inf, -torch.inf

    def run(x: Tensor, copies: Tensor, weight: Tensor) -> list[Tensor]:
        before, module, x = copy.deepcopy(linear), copy.deepcopy(norm), x.clone().requires_grad_()
        rows = counted_rows(x, copies)
        out = module(before(rows) if behind else rows).value
        (out * weight).sum().backward()
        grads = [p.grad for m in (before, module) for p in m.parameters() if p.grad is not None]
        return [out.detach(), x.grad, *grads, *(b.double() for b in module.buffers())]  # type: ignore[list-item]

    there = copies > 0
    found, expected = run(spoilt, copies, weight), run(x[there], copies[there], weight[there])
    assert torch.equal(found[0][~there], norm.bias.detach().expand(3, 3)) and not found[1][~there].any()
    for value, reference in zip([found[0][there], found[1][there], *found[2:]], expected, strict=True):
        assert torch.allclose(value, reference, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("norm", [nn.BatchNorm1d, CountedBatchNorm])
def test_rows_have_as_many_channels_as_the_norm(norm: type[nn.BatchNorm1d], width: int) -> None:
    """A single one would be broadcast. Said at once, not when the values are read."""
    made, rows = norm(width), counted_rows(torch.zeros(2, 3))
    with pytest.raises(ValueError, match=f"Expected {width} channels of floats for this BatchNorm, got 3 of torch.float32"):
        made(rows)
    with pytest.raises(ValueError, match=r"of floats for this BatchNorm, got 3 of torch\.int64"):
        norm(3)(counted_rows(torch.zeros(2, 3, dtype=torch.int64)))
    assert not made.running_mean.any()


def test_convert_replaces_every_batchnorm_and_keeps_its_state() -> None:
    inner = nn.BatchNorm1d(3, eps=0.1, momentum=None, affine=False)
    module = nn.Sequential(nn.Linear(3, 3), nn.Sequential(inner, nn.SyncBatchNorm(3)), nn.LayerNorm(3)).eval()
    inner(torch.randn(4, 3)), inner.train(), inner(torch.randn(4, 3))
    state = copy.deepcopy(module.state_dict())
    converted = CountedBatchNorm.convert(module)
    assert converted is module and [type(m) for m in converted[1]] == [CountedBatchNorm, CountedBatchNorm]
    new = converted[1][0]
    assert (new.eps, new.momentum, new.affine, new.training) == (0.1, None, False, True)
    assert converted[1][1].training is False and type(converted[2]) is nn.LayerNorm
    for name, value in converted.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert CountedBatchNorm.convert(new) is new  # once is enough
    alone = CountedBatchNorm.convert(nn.BatchNorm1d(2))
    assert type(alone) is CountedBatchNorm


@pytest.mark.parametrize("train", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("linear", [False, True], ids=["", "behind a linear"])
@pytest.mark.parametrize("among", [[True, False, True, True, False], [2, 0, 1, 3, 1]], ids=["some", "counted"])
def test_among_some_rows_is_batchnorm_of_these(among: list[int], linear: bool, train: bool) -> None:
    ordinary, counted = _pair({})
    ordinary.train(train), counted.train(train)
    first = nn.Linear(3, 3, dtype=torch.float64) if linear else nn.Identity()
    x = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    copies, there = torch.tensor([3, 1, 0, 4, 2]), torch.tensor(among)
    times = copies * there
    some = times > 0
    expected = ordinary(first(x.repeat_interleave(times, 0)))
    rows = counted_rows(x, copies)
    found = counted(first(rows), rows.of(there[:, None])).value
    torch.testing.assert_close(found[some].repeat_interleave(times[some], 0), expected)
    wanted = torch.autograd.grad(expected.square().sum(), [x, ordinary.weight, ordinary.bias])
    got = torch.autograd.grad((found[some].square() * times[some, None]).sum(), [x, counted.weight, counted.bias])
    torch.testing.assert_close(got, wanted)
    torch.testing.assert_close(dict(counted.named_buffers()), dict(ordinary.named_buffers()))


def test_among_no_rows_leaves_the_statistics_as_they_are() -> None:
    ordinary, counted = _pair({})
    ordinary(torch.zeros(0, 3, dtype=torch.float64))
    rows = counted_rows(torch.randn(2, 3, dtype=torch.float64), torch.tensor([3, 1]))
    assert bool(counted(rows, rows.of(torch.zeros(2, 1, dtype=torch.bool))).value.isfinite().all())
    torch.testing.assert_close(dict(counted.named_buffers()), dict(ordinary.named_buffers()))
    with pytest.raises(ValueError, match=r"^Expected more than 1 of the pairs to compute BatchNorm statistics, got 1: put"):
        counted(rows, rows.of(torch.tensor([[False], [True]])))


def test_among_takes_rows_of_bools() -> None:
    counted = CountedBatchNorm(3)
    rows = counted_rows(torch.randn(2, 3), torch.tensor([3, 1]))
    for wrong in (rows, rows.of(torch.ones(2, dtype=torch.bool)), torch.ones(2, 1, dtype=torch.bool)):
        with pytest.raises(TypeError, match=r"^Expected bool or int64 Rows \[rows, 1\] for a BatchNorm among some rows, got "):
            counted(rows, wrong)
    with pytest.raises(TypeError, match=r"^Expected Rows for a BatchNorm among some of them, got a tensor"):
        counted(rows.value, rows.of(torch.ones(2, 1, dtype=torch.bool)))
