"""Which tiles are fastest for each kernel, on the largest layer of a batch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F

from enfa.nn.triton import gine, linear_norm, norm, sums, wide
from enfa.nn.triton import products as linear
from enfa.nn.triton.linears.split import split_weight
from enfa.plan.derived.maps import kind_lists, merged_map
from enfa.plan.derived.needs import list_maps
from gpu_parts.cases import Case, Dataset, model_for, plan_for
from gpu_parts.measure import kernel_us

TILES = ((8, 32, 1), (16, 32, 2), (32, 32, 8), (4, 128, 1), (8, 128, 2), (16, 128, 4), (4, 512, 4), (16, 64, 4))
SHARES = (
    (32, 2048, 128, 4), (32, 4096, 128, 8), (64, 2048, 128, 4), (64, 4096, 128, 8), (64, 8192, 128, 8),
    (64, 4096, 64, 4), (128, 4096, 128, 8),
)  # fmt: skip


def _time(call: Any) -> str | float:
    try:
        return kernel_us(call)
    except Exception as error:
        return f"{type(error).__name__}: {str(error)[:60]}"


def _best(found: dict[str, Any]) -> list[str]:
    """The five fastest, microseconds."""
    good = sorted((v, k) for k, v in found.items() if isinstance(v, float))
    bad = [f"{k}: {v}" for k, v in found.items() if isinstance(v, str)]
    return [f"{k}: {v:.1f} us" for v, k in good[:5]] + bad[:2]


def lists(case: Case, data: Dataset, size: int) -> Iterator[tuple[str, list[str]]]:
    """Sums over links and over the readout's deltas, both ways, by tile."""
    model = model_for(case, data)
    plan = plan_for(data, data.batch(size), "marking", model, "distinct")
    links, rows = plan.tables[case.layers].links, plan.num_rows(case.layers - 1)
    merged = merged_map(links, rows, kinds=data.molecules).to("cuda")
    pool = list_maps(plan, case.layers + 1)[0].to("cuda")
    table, grad = (torch.randn(n, case.width, device="cuda") for n in (rows, links.num_rows))
    calls = {
        "pool forwards": lambda: sums.triton_sums(grad, pool.forward),
        "pool backwards": lambda: sums.triton_sums(grad[: len(pool.forward)], pool.backward),
    }
    if data.molecules:
        count = len(plan.edge_mark_rows)
        kinds, edge = kind_lists(links, count), torch.randn(count, case.width, device="cuda")
        calls |= {
            "gine forwards": lambda: gine._forward(table, edge, merged.forward),
            "gine backwards": lambda: gine._backward(grad, table, edge, merged.backward),
        }
        if kinds is None:
            calls["gine both"] = lambda: gine.both_gradients(grad, table, edge, None, merged.backward)
        else:
            by_kind = kinds.to("cuda")
            calls["gine edges"] = lambda: gine._edge_gradient(grad, table, edge, by_kind)
    else:
        calls |= {
            "links forwards": lambda: sums.triton_sums(table, merged.forward),
            "links backwards": lambda: sums.triton_sums(grad, merged.backward),
        }
    original = sums.shape_of
    for name, call in calls.items():
        found = {"as it is": _time(call)}
        for rows_, cols, warps in TILES:
            if cols >= 2 * case.width:
                continue
            shape = {"ROWS": rows_, "COLS": cols, "num_warps": warps}
            sums.shape_of = gine.shape_of = lambda *_, shape=shape: shape
            found[str(shape)] = _time(call)
        sums.shape_of = gine.shape_of = original
        sums.UNROLL = gine.UNROLL = 8
        found["8 at once"] = _time(call)
        sums.UNROLL = gine.UNROLL = 4
        yield f"{case.name} {size} {name}", _best(found)


def norms(rows: int, width: int) -> Iterator[tuple[str, list[str]]]:
    x = torch.randn(rows, width, device="cuda", requires_grad=True)
    grad, copies = torch.randn(rows, width, device="cuda"), torch.randint(0, 9, (rows,), device="cuda")
    weight, bias = (torch.randn(width, device="cuda", requires_grad=True) for _ in range(2))

    def forwards() -> torch.Tensor:
        return norm.counted_norm(x, weight, bias, copies, 1e-5, True, None)[0]

    original, found = norm._launch, {"forwards": {}, "both ways": {}}
    for cols, tile, parts, warps in SHARES:
        if cols >= 2 * width:
            continue

        def launch(rows: int, channels: int, cols=cols, tile=tile, parts=parts, warps=warps):
            blocks = -(-rows // (tile // cols))
            return (min(parts, blocks), -(-channels // cols)), {"ROWS": tile // cols, "COLS": cols, "num_warps": warps}

        norm._launch, name = launch, f"cols {cols} tile {tile} parts {parts} warps {warps}"
        found["forwards"][name] = _time(forwards)
        found["both ways"][name] = _time(lambda: torch.autograd.grad(forwards(), x, grad))
    norm._launch = original
    for name, each in found.items():
        yield f"norm {rows} x {width} {name}", _best(each)


def products(rows: int, width: int) -> Iterator[tuple[str, list[str]]]:
    """cuBLAS and ours; with the largest error relative to the largest entry."""
    x, grad = torch.randn(rows, width, device="cuda"), torch.randn(rows, width, device="cuda")
    weight, bias = torch.randn(width, width, device="cuda") / width**0.5, torch.randn(width, device="cuda")
    exact = {
        "forwards": F.linear(x.double(), weight.double(), bias.double()),
        "backwards": grad.double() @ weight.double(), "weights": grad.double().T @ x.double(),
    }  # fmt: skip
    plain = {
        "forwards": lambda: F.linear(x, weight, bias), "backwards": lambda: grad @ weight,
        "weights": lambda: grad.T @ x,
    }  # fmt: skip
    split = split_weight(weight)

    def times(table: torch.Tensor, shift: torch.Tensor | None, transposed: bool) -> torch.Tensor:
        if split is None:
            return linear.tall_times(table, weight, shift, transposed)
        return wide.wide_times(table, split, weight.shape, shift, transposed)

    ours = {
        "forwards": lambda: times(x, bias, False), "backwards": lambda: times(grad, None, True),
        "weights": lambda: linear.add_parts(wide.weight_parts(grad, x), 0, x.dtype).view(width, width),
    }  # fmt: skip
    for name, call in plain.items():
        found: dict[str, Any] = {}
        for who, run, precision in (
            ("cuBLAS", call, "highest"), ("cuBLAS, TF32", call, "high"), ("ours", ours[name], "highest"),
        ):  # fmt: skip
            torch.set_float32_matmul_precision(precision)
            error = float((run().double() - exact[name]).abs().max() / exact[name].abs().max())
            found[f"{who}, error {error:.1e}"] = _time(run)
        torch.set_float32_matmul_precision("highest")
        yield f"product {rows} x {width} {name}: {2 * rows * width * width / 1e6:.0f} MFLOP", _best(found)


def together(rows: int, width: int) -> Iterator[tuple[str, list[str]]]:
    """A linear with the norm behind it, as one operation and as two, both ways."""
    x = torch.randn(rows, width, device="cuda", requires_grad=True)
    grad, copies = torch.randn(rows, width, device="cuda"), torch.randint(0, 9, (rows,), device="cuda")
    w = (torch.randn(width, width, device="cuda") / width**0.5).requires_grad_()
    b, weight, bias = (torch.randn(width, device="cuda", requires_grad=True) for _ in range(3))
    rest = (weight, bias, copies, 1e-5, True, None)
    calls = {
        "one": lambda: linear_norm.linear_norm(x, w, b, *rest)[0],
        "two": lambda: norm.counted_norm(F.linear(x, w, b), *rest)[0],
    }
    inputs, found = (x, w, weight, bias), {}
    for shares in (128, 256, 512):
        linear_norm.SHARES = shares
        for name, call in calls.items():
            if name == "two" and shares != 256:
                continue
            found[f"{name} forwards, shares {shares}"] = _time(call)
            found[f"{name} both ways, shares {shares}"] = _time(lambda c=call: torch.autograd.grad(c(), inputs, grad))
    linear_norm.SHARES = 256
    yield f"linear and norm {rows} x {width}", [f"{k}: {v if isinstance(v, str) else round(v, 1)} us" for k, v in found.items()]
