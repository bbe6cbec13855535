"""numba's kernels of the counted norm against plain operators, over several runs of rows, and in any number of threads."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from enfa.nn.ops import normalise as module
from enfa.nn.ops import threads
from enfa.nn.ops._normalise import RUN
from enfa.nn.ops.counted import uncounted_rows
from enfa.nn.ops.normalise import normalise


def _case(rows: int, channels: int, dtype: torch.dtype, zeros: bool = True) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, how often each counts, and what comes back to each. Rows that stand for nothing hold NaN."""
    draw = torch.Generator().manual_seed(rows + channels)
    x = 3 + torch.randn(rows, channels, dtype=dtype, generator=draw)
    copies = torch.randint(0 if zeros else 1, 5, (rows,), generator=draw)
    x[copies == 0] = torch.nan
    return x, copies, torch.randn(rows, channels, dtype=dtype, generator=draw) * (copies > 0)[:, None]


def _all_of(x: Tensor, copies: Tensor, grad: Tensor, relu: bool, affine: bool = True, alone: bool = False) -> list[Tensor]:
    """The result, every gradient, and the running statistics."""
    channels = x.shape[1]
    weight, bias = (torch.linspace(a, 2, channels, dtype=x.dtype).requires_grad_(affine) for a in (-1, 0.5))
    running = x.new_zeros(channels), x.new_ones(channels), torch.tensor(0), 0.1
    read = x.clone().requires_grad_()
    given = (weight, bias) if affine else (None, None)
    out = normalise(read, copies, uncounted_rows(copies), *given, 1e-5, None, running, relu, alone)
    grads = torch.autograd.grad(out, [read, weight, bias] if affine else [read], grad)
    return [out.detach(), *grads, *running[:3]]


@pytest.fixture
def by_operators(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Tensor]]:
    def run(*args: Tensor, **options: bool) -> list[Tensor]:
        with monkeypatch.context() as patched:
            patched.setattr(module, "by_numba", lambda x: False)
            return _all_of(*args, **options)  # type: ignore[arg-type]

    return run


@pytest.mark.parametrize("rows", [1, 5, 129, 2 * RUN + 77])
@pytest.mark.parametrize("options", [{"relu": False}, {"relu": True}, {"relu": True, "affine": False}], ids=repr)
def test_as_operators_compute_it(by_operators: Callable[..., list[Tensor]], rows: int, options: dict[str, bool]) -> None:
    case = _case(rows, 3, torch.float64)
    for found, expected in zip(_all_of(*case, **options), by_operators(*case, **options), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("relu", [False, True])
def test_rounds_no_more_than_operators_do(by_operators: Callable[..., list[Tensor]], relu: bool) -> None:
    """In float32, over many rows far from 0: the yardstick is float64."""
    x, copies, grad = _case(20 * RUN, 4, torch.float32, zeros=False)
    case = (x + 100, copies, grad)
    exact = _all_of(*(t.double() if t.is_floating_point() else t for t in case), relu=relu)  # type: ignore[misc]
    for found, plain, truth in zip(_all_of(*case, relu=relu), by_operators(*case, relu=relu), exact, strict=True):
        mine, theirs = ((v.double() - truth).abs().max() / truth.abs().max().clamp(min=1) for v in (found, plain))
        assert mine <= max(2 * theirs, torch.tensor(1e-6))


@pytest.mark.parametrize("count", [2, 3, 8])
def test_the_same_bits_in_any_number_of_threads(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    case = _case(5 * RUN + 3, 4, torch.float32)
    alone = _all_of(*case, relu=True)
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(torch, "get_num_threads", lambda: count)
    for found, expected in zip(_all_of(*case, relu=True), alone, strict=True):
        assert torch.equal(found, expected)


def test_equal_rows_have_their_own_mean() -> None:
    """Exactly: a rounding error divided by a variance of 0 would decide on which side of a ReLU they come out."""
    x = torch.full((3 * RUN, 2), 0.1, dtype=torch.float32)
    out = normalise(x, torch.full((len(x),), 3), None, None, None, 1e-30, None, None)
    assert not out.any()


@pytest.mark.parametrize("alone", [False, True])
def test_rows_that_others_read_may_be_written_into(alone: bool) -> None:
    x = torch.randn(4, 2, dtype=torch.float64, requires_grad=True)
    read = x * 2
    out = normalise(read, torch.tensor([1, 2, 1, 1]), None, None, None, 1e-5, None, None, False, alone)
    read.add_(1)
    if alone:
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            out.square().sum().backward()
    else:
        out.square().sum().backward()


def test_nan_stays_behind_a_relu() -> None:
    x = torch.tensor([[torch.nan], [1.0]])
    assert normalise(x, torch.tensor([1, 1]), None, None, None, 1e-5, None, None, True).isnan().all()


def test_a_forked_process_has_threads_of_its_own() -> None:
    assert threads._pool(1) is threads._pool(1) and threads._pool(1) is not threads._pool(2)


@pytest.mark.parametrize("value", [torch.inf, -torch.inf, torch.nan, 1e38])
@pytest.mark.filterwarnings("error")
def test_says_no_more_about_infinite_rows_than_operators_do(by_operators: Callable[..., list[Tensor]], value: float) -> None:
    x, copies, grad = _case(5, 3, torch.float32, zeros=False)
    x[2, 1] = value
    for found, expected in zip(_all_of(x, copies, grad, relu=True), by_operators(x, copies, grad, relu=True), strict=True):
        torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize("relu", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_of_equal_gradients_of_equal_rows_nothing_is_left(dtype: torch.dtype, relu: bool) -> None:
    """Nor of those of two rows when they are added up: each norm multiplies what rounding leaves by 1 / sqrt(eps)."""
    draw = torch.Generator().manual_seed(5)
    x = torch.randn(1, 64, dtype=dtype, generator=draw).expand(2, 64)
    equal, other = torch.randn(1, 64, dtype=dtype, generator=draw), torch.tensor([[1.5], [-0.25]], dtype=dtype)
    for grad in (equal.expand(2, 64), other.expand(2, 64)):
        of_x = _all_of(x, torch.ones(2, dtype=torch.long), grad.contiguous(), relu)[1]
        assert not of_x.sum(0).any()
    assert of_x.any()
