"""The kernels for CUDA: the contract of tests/test_exact.py on a GPU, and every fused operation against plain ones."""

import copy
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from cases import EDGE_CHANNELS, FACTORS, NODE_CHANNELS, POLICIES, allowed, live_model
from covering import covering
from one_table import counted_rows
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint
from torch_geometric.data import Data

import enfa
from enfa.nn.convs.gine import _Listed
from enfa.nn.ops.linear import through
from enfa.nn.ops.norm import CountedBatchNorm
from enfa.nn.ops.segment import weighted_sum
from enfa.plan.derived.maps import kind_lists, merged_map
from enfa.plan.derived.order import Lists, SparseMap
from enfa.plan.links import Links, Sums
from enfa.testing import assert_same_as_full, degenerate_graphs, random_graphs

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
CASES = covering(FACTORS, allowed)


def _graphs(case: dict, seed: int) -> list[Data]:
    channels, edge_channels = NODE_CHANNELS[case["nodes"]], EDGE_CHANNELS[case["edges"]]
    few = random_graphs(3, 8, seed=seed, channels=channels, edge_channels=edge_channels, loops=True, parallel=True)
    return few + list(degenerate_graphs(channels, edge_channels, seed).values())


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: " ".join(map(str, CASES[i].values())))
def test_same_as_full(number: int) -> None:
    case = CASES[number]
    graphs = _graphs(case, number)
    assert_same_as_full(live_model(case, graphs).cuda(), POLICIES[case["policy"]], graphs, steps=5)


@pytest.mark.parametrize("number", range(0, len(CASES), 3))
def test_float32_is_near_float64_on_the_cpu(number: int) -> None:
    """Our own float32 kernels, products on the tensor cores among them, against plain float64."""
    case = CASES[number]
    graphs, policy = _graphs(case, number), POLICIES[case["policy"]]
    model = live_model(case, graphs).eval()
    double = copy.deepcopy(model).double()
    exact = double(enfa.make_plan(graphs, policy, double, "full"))
    found = model.cuda()(enfa.make_plan(graphs, policy, model).to("cuda"))
    assert (found.double().cpu() - exact).norm() <= 1e-5 * exact.norm()


def _normed(x: Tensor, linear: nn.Linear, norm: CountedBatchNorm, copies: Tensor, weight: Tensor) -> list[Tensor]:
    """Output, gradients and running statistics of relu(norm(linear(x)))."""
    x = x.clone().requires_grad_()
    out = norm(linear(counted_rows(x, copies))).relu().value
    (out * weight).sum().backward()
    parameters = [p.grad for m in (linear, norm) for p in m.parameters()]
    return [out.detach(), x.grad, *parameters, norm.running_mean, norm.running_var]  # type: ignore[list-item]


SHAPES = [
    (5000, 4, 32), (33, 32, 32), (3000, 64, 40), (2000, 301, 300), (5000, 128, 128), (3000, 8, 128), (3000, 100, 16),
]  # fmt: skip


@pytest.mark.parametrize(("rows", "ins", "outs"), SHAPES)
def test_a_linear_and_its_norm_are_what_they_are_apart(rows: int, ins: int, outs: int) -> None:
    torch.manual_seed(0)
    linear, norm = nn.Linear(ins, outs).double(), CountedBatchNorm(outs).double().train()
    x, weight, copies = torch.randn(rows, ins).double(), torch.randn(rows, outs).double(), torch.randint(0, 5, (rows,))
    with torch.no_grad():
        # nothing counts that is so near the ReLU's kink that rounding decides
        weight *= copy.deepcopy(norm)(linear(counted_rows(x, copies))).value.abs() > 1e-3
    there = [copy.deepcopy(m).float().cuda() for m in (linear, norm)]
    found = _normed(x.float().cuda(), *there, copies.cuda(), weight.float().cuda())  # type: ignore[arg-type]
    exact = _normed(x, linear, norm, copies, weight)
    for value, reference in zip(found, exact):
        assert (value.double().cpu() - reference).norm() <= 2e-6 * reference.norm().clamp(min=1e-3)


def _through(modules: nn.Module, x: Tensor, weight: Tensor) -> list[Tensor]:
    """Output and gradients."""
    x = x.clone().requires_grad_()
    out = through(modules, x)
    (out * weight).sum().backward()
    return [out.detach(), x.grad, *(p.grad for p in modules.parameters())]  # type: ignore[list-item]


@torch.no_grad()
def _off_the_kink(linear: nn.Module, x: Tensor) -> Tensor:
    """x with every row drawn anew for which rounding might decide what a ReLU behind the linear lets through."""
    # float32 is off by 1e-7; a single number on the other side changes the gradient of x by 4e-3 of its norm
    while (near := (linear(x).abs() < 1e-4).any(1)).any():
        x[near] = torch.randn(int(near.sum()), x.shape[1], dtype=x.dtype)
    return x


@pytest.mark.parametrize("rows", [1, 33, 700, 4000])
@pytest.mark.parametrize(("ins", "outs"), [(9, 10), (128, 128), (300, 70)])
@pytest.mark.parametrize("bias", [True, False])
def test_linears_over_few_rows_and_over_many(rows: int, ins: int, outs: int, bias: bool) -> None:
    torch.manual_seed(0)
    modules = nn.Sequential(nn.Linear(ins, outs, bias), nn.ReLU(), nn.Linear(outs, 3, bias)).double()
    x, weight = _off_the_kink(modules[0], torch.randn(rows, ins).double()), torch.randn(rows, 3).double()
    there = copy.deepcopy(modules).float().cuda()
    exact = _through(modules, x, weight)
    found = _through(there, x.float().cuda(), weight.float().cuda())
    # Gradients of parameters add up all rows: one after another in float32, 4000 of them come to 1.3e-6; the output and
    # the gradient of x, which add up channels, to 0.9e-6.
    for i, (value, reference) in enumerate(zip(found, exact)):
        assert (value.double().cpu() - reference).norm() <= (2e-6 if i < 2 else 4e-6) * reference.norm()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_weights_of_a_byte_are_those_of_four(dtype: torch.dtype) -> None:
    ptr = torch.cat([torch.zeros(1, dtype=torch.long), torch.randint(0, 80, (300,)).cumsum(0)])
    row, weight = torch.randint(0, 500, (int(ptr[-1]),)), torch.randint(-127, 128, (int(ptr[-1]),))
    table = torch.randn(500, 32, dtype=dtype, device="cuda")
    found = []
    for kind in (torch.int8, torch.int32):
        sums, read = Sums(ptr, row, weight.to(kind)).to("cuda"), table.clone().requires_grad_()
        out = weighted_sum(read, sums)
        out.square().sum().backward()
        assert sums.cache["sum"].forward.weight.dtype == sums.cache["sum"].backward.weight.dtype == kind
        found.append((out, read.grad))
    assert all(torch.equal(one, other) for one, other in zip(*found))


@pytest.mark.parametrize("p", [0.1, 0.5])
def test_dropout_draws_the_same_masks_as_on_the_cpu(p: float) -> None:
    torch.manual_seed(0)
    module, x = nn.Dropout(p), torch.randn(70, 300)
    identity = torch.randint(-(2**62), 2**62, (70,))
    results = []
    for device in ("cpu", "cuda"):
        torch.manual_seed(1)
        rows = x.to(device, copy=True).requires_grad_()
        given = counted_rows(rows, identity=identity.to(device))
        out = module(module(given)).value  # two masks, before the first one's way back
        (grad,) = torch.autograd.grad(out.square().sum(), rows)
        results.append([out.detach().cpu(), grad.cpu()])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=1e-6, atol=0)


def test_what_our_kernels_do_not_know_is_left_to_others() -> None:
    """A norm without bias, and a weight that lies transposed in memory."""
    torch.manual_seed(0)
    x, copies = torch.randn(300, 40).double(), torch.randint(1, 5, (300,))
    linear, norm = nn.Linear(40, 40).double(), CountedBatchNorm(40).double().train()
    norm.bias = None
    linear.weight = nn.Parameter(linear.weight.detach().clone().T)
    there = [copy.deepcopy(m).float().cuda() for m in (linear, norm)]
    with torch.no_grad():
        exact = norm(linear(counted_rows(x, copies))).value
        found = there[1](there[0](counted_rows(x.float().cuda(), copies.cuda()))).value
    assert (found.double().cpu() - exact).norm() <= 1e-5 * exact.norm()


def test_not_a_number_stays_one() -> None:
    linear, norm, x = nn.Linear(8, 8).cuda(), CountedBatchNorm(8).cuda(), torch.randn(50, 8, device="cuda")
    x[3, 2] = float("nan")
    assert norm(linear(counted_rows(x))).relu().value.isnan().any()


@pytest.mark.parametrize("layers", [False, True], ids=["model", "layers"])
def test_checkpoints_draw_the_same_masks_again(layers: bool) -> None:
    """Of a bag, checkpointing does not know on which device it is, and sets the CPU's generator back only."""
    graphs = random_graphs(6, 9, seed=1, channels=3)
    torch.manual_seed(0)
    model = enfa.DSGNN(3, 32, 2, 3, dropout=0.4).cuda().train()
    model.head[2].p = 0.0  # ordinary dropout, which draws on the device
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), model).to("cuda")
    results = []
    for again in (False, True):
        there = copy.deepcopy(model)
        if again and layers:
            for layer in there.layers:
                layer.forward = partial(checkpoint, type(layer).forward, layer, use_reentrant=False)
        torch.manual_seed(1)
        out = checkpoint(there, plan, use_reentrant=False) if again and not layers else there(plan)
        out.square().sum().backward()
        results.append([out, *(p.grad for p in there.parameters())])
    for value, reference in zip(*results):
        assert (value - reference).norm() <= 1e-5 * reference.norm().clamp(min=1)


def _readers(rows: int, outs: int, kinds: int) -> tuple[SparseMap, Lists | None]:
    """Every row's own and up to five incoming rows; half of them read one row, whose list is long."""
    count = torch.randint(0, 6, (outs,))
    ptr = torch.cat([torch.zeros(1, dtype=torch.int64), count.cumsum(0)])
    row, kind = torch.randint(0, rows, (int(ptr[-1]),)), torch.randint(0, kinds, (int(ptr[-1]),))
    row[torch.rand(len(row)) < 0.5] = rows // 2
    links = Links(torch.randint(0, rows, (outs,)), ptr, row, kind)
    return merged_map(links, rows, kinds=True), kind_lists(links, kinds)


@pytest.mark.parametrize("kinds", [1, 5, 8, 11, 16, 17])
@pytest.mark.parametrize(("rows", "channels"), [(40, 20), (5000, 128), (3000, 300)])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_both_gradients_of_gine(kinds: int, rows: int, channels: int, dtype: torch.dtype) -> None:
    from enfa.nn.triton.gine import gine_sum

    torch.manual_seed(0)
    merged, lists = _readers(rows, 3 * rows, kinds)
    x, edge = (torch.randn(n, channels).to(dtype).requires_grad_() for n in (rows, kinds))
    grad = torch.randn(3 * rows, channels).to(dtype)
    exact_in = [t.detach().double().requires_grad_() for t in (x, edge)]
    exact_out = _Listed.apply(*exact_in, merged, lists)
    exact = [exact_out, *torch.autograd.grad(exact_out, exact_in, grad.double())]
    there = [t.detach().cuda().requires_grad_() for t in (x, edge)]
    found = []
    for _ in range(2):
        out = gine_sum(*there, merged.to("cuda"), lists and lists.to("cuda"))
        found.append([out, *torch.autograd.grad(out, there, grad.cuda())])
    most = {torch.float64: 1e-13, torch.float32: 1e-6, torch.bfloat16: 1e-2}[dtype]
    for value, again, reference in zip(*found, exact):
        assert value.dtype == dtype and torch.equal(value, again)
        assert (value.double().cpu() - reference).norm() <= most * reference.norm()


@pytest.mark.parametrize("kinds", [4, 17])
def test_not_a_number_reaches_its_row_and_kind_only(kinds: int) -> None:
    from enfa.nn.triton.gine import gine_sum

    torch.manual_seed(0)
    merged, lists = _readers(50, 100, kinds)
    ins, grad = [torch.randn(n, 40).double().requires_grad_() for n in (50, kinds)], torch.randn(100, 40).double()
    grad[7], grad[9, 3] = float("nan"), float("inf")
    exact = torch.autograd.grad(_Listed.apply(*ins, merged, lists), ins, grad)
    there = [t.detach().cuda().requires_grad_() for t in ins]
    found = torch.autograd.grad(gine_sum(*there, merged.to("cuda"), lists and lists.to("cuda")), there, grad.cuda())
    assert all(g.isnan().any() for g in exact) and not all(g.isnan().all() for g in exact)
    for value, reference in zip(found, exact):
        torch.testing.assert_close(value.cpu(), reference, equal_nan=True)


def test_the_same_bits_every_time() -> None:
    graphs = random_graphs(6, 12, seed=1, channels=3)
    results = []
    for _ in range(2):
        torch.manual_seed(0)
        model = enfa.DSGNN(3, 32, 2, 3).cuda().train()
        plan = enfa.make_plan(graphs, enfa.NodeMarking(), model).to("cuda")
        F.cross_entropy(model(plan), torch.arange(6, device="cuda") % 2).backward()
        results.append([p.grad for p in model.parameters()])
    assert all(torch.equal(a, b) for a, b in zip(*results))
