"""Which tiles are fastest for products of tall tables with wide weights, on an NVIDIA GPU.

    python benchmarks/wide.py                      # 43,000 rows and 300 columns: a layer of molhiv, batch of 128 graphs
    python benchmarks/wide.py --rows 12000 --width 128 --out wide.json

Every tile's product is first compared with float64, entry by entry. Those that a GPU has no room for, or that come out wrong,
are listed with the reason. The first line of each table is the tile that the package takes.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from common import show, stamp
from gpu_parts.measure import kernel_us


def tiles() -> Iterator[dict[str, int]]:
    """Of ``x @ weight``."""
    for (cols, rest), rows, warps, stages, depth in product(
        ((64, 0), (128, 0), (256, 0), (256, 64)), (64, 128), (4, 8), (2, 3), (32, 64)
    ):
        if rows * (cols + rest) <= 64 * 160 * (warps // 4):  # two accumulators in registers
            yield {"ROWS": rows, "COLS": cols, "REST": rest, "DEPTH": depth, "num_warps": warps, "num_stages": stages}


def weight_tiles() -> Iterator[dict[str, int]]:
    """Of ``grad.T @ x``."""
    for rows, cols, warps, stages, depth in product((64, 128), (64, 128, 256), (4, 8), (2, 3), (32, 64)):
        if rows * cols <= 64 * 256 * (warps // 4):
            yield {"ROWS": rows, "COLS": cols, "DEPTH": depth, "num_warps": warps, "num_stages": stages}


def wrong(found: Tensor, a: Tensor, b: Tensor) -> float:
    """The largest error of an entry, of what was added up for it."""
    a, b = a.double(), b.double()
    return float(((found.double() - a @ b).abs() / (a.abs() @ b.abs()).clamp(min=1e-300)).max())


def compared(name: str, made: Callable[[Any], Tensor], expected: Callable[[Tensor], float], every: Iterator[Any]) -> list[dict]:
    """Times of today's tile (None) and of all others, the fastest first behind it."""
    rows = []
    for tile in (None, *every):
        entry: dict[str, Any] = {"product": name, "tile": tile}
        try:
            entry["error"] = expected(made(tile))
            entry["us"] = kernel_us(lambda tile=tile: made(tile)) if entry["error"] < 2e-6 else None
        except Exception as error:  # no room for it
            entry |= {"error": None, "us": None, "why": str(error).strip().splitlines()[0][:60]}
        rows.append(entry)
    return [rows[0], *sorted(rows[1:], key=lambda entry: entry["us"] or float("inf"))]


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--rows", type=int, default=43_000)
    options.add_argument("--width", type=int, default=300, help="columns of the table and of the product")
    options.add_argument("--out", type=Path, help="a .json file for all times")
    given = options.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("Expected an NVIDIA GPU, got none")

    from enfa.nn.triton.linears.products import add_parts
    from enfa.nn.triton.linears.split import split_weight
    from enfa.nn.triton.linears.wide import weight_parts, wide_times

    torch.manual_seed(0)
    count, width = given.rows, given.width
    x, grad = (torch.randn(count, width, device="cuda") for _ in range(2))
    weight = torch.randn(width, width, device="cuda")
    split = split_weight(weight)
    if split is None:
        raise SystemExit(f"Expected a wide weight, of more than 64 columns, got {width}")
    entries = compared(
        "x @ weight", lambda tile: wide_times(x, split, weight.shape, None, False, tile=tile),
        lambda found: wrong(found, x, weight.T), tiles(),
    )  # fmt: skip
    entries += compared(
        "grad.T @ x", lambda tile: add_parts(weight_parts(grad, x, tile=tile), 0, torch.float32),
        lambda found: wrong(found.view(width, width), grad.T, x), weight_tiles(),
    )  # fmt: skip
    if given.out is not None:
        about = {"device": torch.cuda.get_device_name(), **stamp(), "rows": count, "width": width}
        given.out.write_text(json.dumps({"about": about, "results": entries}, indent=1) + "\n")
    for name in dict.fromkeys(entry["product"] for entry in entries):
        lines = [
            [str(e["tile"] or "today's"), e.get("why", "-") if e["us"] is None else f"{e['us']:.1f}",
             "-" if e["error"] is None else f"{e['error']:.1e}"]
            for e in entries if e["product"] == name
        ]  # fmt: skip
        show(f"{name}: {count:,} rows, {width} columns, {torch.cuda.get_device_name()}", ("tile", "us", "error"), lines[:16])


if __name__ == "__main__":
    main()
