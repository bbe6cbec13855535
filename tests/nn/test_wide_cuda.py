"""Products on a GPU: float32's accuracy whatever the sizes of the numbers, two linears as one, and sums of linears."""

import copy

import pytest
import torch
from one_table import counted_rows
from torch import Tensor, nn

from enfa.nn.cuda.side_stream import aside
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.rowwise import Rows
from enfa.nn.rowwise.fused import HeldNorm

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
SHAPES = [(200, 128, 128), (5000, 128, 128), (1500, 300, 300), (700, 70, 200), (300, 301, 65)]


def _spread(rows: int, cols: int, by_row: float, by_column: float) -> Tensor:
    """Numbers whose rows and columns differ in size by up to so many powers of ten, each way."""
    sizes = 10 ** (by_row * (2 * torch.rand(rows, 1) - 1) + by_column * (2 * torch.rand(1, cols) - 1))
    return (torch.randn(rows, cols) * sizes).cuda()


def _within(found: Tensor, a: Tensor, b: Tensor) -> None:
    """a @ b, each entry within rounding of the numbers that were added up."""
    a, b = a.double(), b.double()
    assert ((found.double() - a @ b).abs() <= 2e-6 * (a.abs() @ b.abs())).all()


@pytest.mark.parametrize(("rows", "ins", "outs"), SHAPES)
def test_products_are_accurate_entry_by_entry(rows: int, ins: int, outs: int) -> None:
    from enfa.nn.triton.linears.products import add_parts
    from enfa.nn.triton.linears.split import split_weight
    from enfa.nn.triton.linears.wide import weight_parts, wide_times

    torch.manual_seed(0)
    weight, x, grad = _spread(outs, ins, 3, 1), _spread(rows, ins, 6, 1), _spread(rows, outs, 6, 1)
    split = split_weight(weight)
    assert split is not None
    _within(wide_times(x, split, weight.shape, None, False), x, weight.T)
    _within(wide_times(grad, split, weight.shape, None, True), grad, weight)
    x[0], grad[0] = 1e12 * x[0], 0  # huge, and of no account
    both = add_parts(weight_parts(grad, x, sums=True), 0, torch.float32)
    _within(both[: outs * ins].view(outs, ins), grad.T, x)
    _within(both[outs * ins :, None], grad.T, x.new_ones(rows, 1))


def test_products_let_nan_through_and_keep_zeros() -> None:
    from enfa.nn.triton.linears.split import split_weight
    from enfa.nn.triton.linears.wide import wide_times

    weight, x = torch.randn(128, 128).cuda(), torch.randn(100, 128).cuda()
    x[3], x[7, 5] = 0, torch.nan
    split = split_weight(weight)
    assert split is not None
    out = wide_times(x, split, weight.shape, None, False)
    assert (out[3] == 0).all() and out[7].isnan().all()
    assert not out[[i for i in range(100) if i != 7]].isnan().any()


@pytest.mark.parametrize(("rows", "ins", "width"), [(200, 128, 128), (5000, 9, 128), (1500, 300, 300), (2, 128, 128)])
@pytest.mark.parametrize("affine", [True, False])
def test_two_linears_as_one(rows: int, ins: int, width: int, affine: bool) -> None:
    torch.manual_seed(0)
    modules = nn.ModuleList([
        nn.Linear(ins, width), CountedBatchNorm(width, affine=affine), nn.Linear(width, width),
        CountedBatchNorm(width, affine=affine),
    ]).cuda()  # fmt: skip
    copies = torch.randint(0, 5, (rows,)).cuda()
    copies[0] = 2
    x, weight = torch.randn(rows, ins).cuda(), torch.randn(rows, width).cuda()
    weight *= (copies > 0)[:, None]  # nothing reads a row that does not count

    def run(together: bool) -> list[Tensor]:
        before, inner, linear, norm = copy.deepcopy(modules)
        given = x.clone().requires_grad_()
        middle = inner(before(counted_rows(given, copies))).relu()
        held = middle.held
        assert isinstance(held, HeldNorm)
        if not together:
            middle.value  # noqa: B018
        out = norm(linear(middle)).relu().value
        assert (middle.held is held) == together and held.running is None
        (out * weight).sum().backward()
        parts = (before, inner, linear, norm)
        grads = [p.grad for m in parts for p in m.parameters()]
        return [out.detach(), given.grad, *grads, *(b.double() for m in parts for b in m.buffers())]  # type: ignore[list-item]

    for value, reference in zip(run(True), run(False), strict=True):
        assert (value - reference).norm() <= 1e-6 * reference.norm()


class _Layer(nn.Module):
    """relu(norm(sum of MLPs)), with a residual connection: what a layer of several messages is, row by row."""

    def __init__(self, width: int, bias: bool) -> None:
        super().__init__()
        make = lambda: nn.Sequential(  # noqa: E731
            nn.Linear(width, width, bias), CountedBatchNorm(width), nn.ReLU(), nn.Linear(width, width, bias)
        )
        self.one, self.other, self.norm, self.last = make(), make(), CountedBatchNorm(width), nn.Linear(width, width, bias)

        for norm in (self.one[1], self.other[1], self.norm):
            nn.init.normal_(norm.weight), nn.init.normal_(norm.bias)  # rows that nobody counts come out as the bias
        self.near: list[float] | None = None

    def forward(self, like: Rows, x: Tensor, y: Tensor) -> Tensor:
        first = like.of(x)
        n = self.norm(self.one(first) + self.other(first.of(y)) + first)
        if self.near is not None:
            self.near.append(float(n.value.abs().min()))
        h = n.relu()
        return (h + self.last(h)).value


Given = tuple[Rows, Tensor, Tensor]


def _layer(rows: int, width: int, bias: bool, least: float = 0.0) -> tuple[_Layer, Given, Tensor]:
    """In float64 on the CPU: a layer, what it reads so that no ReLU is nearer to its kink, and the gradient behind it."""
    torch.manual_seed(0)
    layer, copies = _Layer(width, bias).double(), torch.randint(0, 5, (rows,))
    watched = copy.deepcopy(layer)
    for mlp in (watched.one, watched.other):
        mlp[1].register_forward_hook(lambda module, args, out: watched.near.append(float(out.value.abs().min())))
    while True:
        x, y = torch.randn(2, rows, width).double()
        given, watched.near = (counted_rows(x, copies), x, y), []
        with torch.no_grad():
            watched(*given)
        if min(watched.near) >= least:
            return layer, given, torch.randn(rows, width).double() * (copies > 0)[:, None]


def _on_the_gpu(layer: _Layer, given: Given, above: Tensor) -> tuple[_Layer, Given, Tensor]:
    like, *both = given
    x, y, above = (t.float().cuda() for t in (*both, above))
    return layer.float().cuda(), (counted_rows(x, like.bag.tables[0].copies.cuda()), x, y), above  # type: ignore[union-attr]


def _gradients(layer: _Layer, given: Given, above: Tensor) -> list[Tensor]:
    like, *both = given
    x, y = (t.detach().requires_grad_() for t in both)
    out = layer(like, x, y)
    return [out.detach(), *torch.autograd.grad(out, [x, y, *layer.parameters()], above)]


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("rows", "width"), [(300, 96), (1100, 96), (1100, 64), (1100, 40), (1100, 300), (1100, 128)])
def test_sums_of_linears(rows: int, width: int, bias: bool) -> None:
    layer, given, above = _layer(rows, width, bias, least=3e-6)
    exact = _gradients(copy.deepcopy(layer), given, above)
    found = _gradients(*_on_the_gpu(layer, given, above))
    for value, reference in zip(found, exact, strict=True):
        # a bias in front of a norm has no gradient, but for the rounding of sums over all rows
        assert (value.double().cpu() - reference).norm() <= 5e-6 * reference.norm().clamp(min=20)


@pytest.mark.parametrize(("rows", "width"), [(5000, 96), (3000, 64)])
def test_sums_of_linears_captured(rows: int, width: int) -> None:
    """A captured step, with weights' gradients aside, has the bits of an eager one, every time."""
    layer, given, above = _on_the_gpu(*_layer(rows, width, True))
    eager, again = (_gradients(layer, given, above) for _ in range(2))
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph), aside(layer):
        captured = _gradients(layer, given, above)
    graph.replay()
    torch.cuda.synchronize()
    for first, second, third in zip(eager, again, captured, strict=True):
        assert torch.equal(first, second) and torch.equal(first, third)
