"""The numbers of a sentence, out of its file, as it writes them."""

from __future__ import annotations

import re
from typing import Any


def part(found: Any, name: str) -> dict[str, Any]:
    return next(e for e in found["results"] if e["part"] == name)


def policies(found: Any) -> list[str]:
    few, many = (next(e for e in found["results"] if e["dataset"] == "PROTEINS" and e["policy"] == name)
                 for name in ("EgoNets(2)", "EgoNets(2, isolate=True)"))  # fmt: skip
    return [f"{many['edits'] / 1e6:.1f}", f"{few['edits'] / 1e6:.1f}", f"{many['cpu_s']:.1f}", f"{few['cpu_s']:.1f}"]


def large(found: Any, hub: int) -> dict[str, Any]:
    """The largest graph with continuous features, or the one with a hub."""
    some = [e for e in found["results"] if e["features"] == "continuous" and e["hub"] == hub and "rows" in e]
    return max(some, key=lambda e: e["nodes"])


def widths(found: Any) -> list[str]:
    rows = large(found, 0)["rows"][0]
    return [f"{rows / 1e6:.0f}", f"{4 * 4 * 32 * rows / 2**30:.1f}"]  # four tensors of float32, width 32


def hubs(found: Any) -> list[str]:
    one, stored = large(found, 20_000), 2**29
    messages = one["messages"][0]
    most = one["peak_gib"] * stored / messages
    return [f"{8 * stored / 2**30:.0f}", f"{most:.0f}", f"{one['peak_gib']:.1f}", f"{messages / 1e9:.2f}"]


def orders(found: Any) -> list[str]:
    plain, *others = found["sorted"]
    rows = max(1 - (1 + e["more"]["8"]) / (1 + plain["more"]["8"]) for e in others)
    return [f"{100 * rows:.0f}", f"{100 * max(1 - e['batch_rows'] / plain['batch_rows'] for e in others):.1f}"]


def per_graph(found: Any) -> list[str]:
    """Bytes of a row in one file, rows of a graph in the other: as benchmarks/scale_orders.py has it."""
    return [f"{found['bytes_per_graph'] / 1e3:.0f}"]


def reads(found: Any) -> list[str]:
    one = next(e for e in found["results"] if e["graphs"] == 20_000)
    beside, start = (one["peak_mb"] - one["start_mb"]) / 1e3, one["start_mb"] / 1e3
    return [f"{one['memory_gib']:.0f}", f"{beside:.1f}", f"{start:.1f}", *(f"{one[k]:.1f}" for k in ("cut_ms", "one_cut_ms")),
            f"{one['read_ms']:.0f}"]  # fmt: skip


def millions_read(found: Any) -> list[str]:
    one = next(e for e in found["results"] if e["graphs"] == 4_000_000)
    given, peak, start = one["memory_gib"] * 2**30 / 1e9, one["peak_mb"] / 1e3, one["start_mb"] / 1e3
    counts = [f"{one['batches']:,}", str(one["windows"]), f"{one['memory_gib']:.0f}"]
    return [*counts, f"{peak:.2f}", f"{start:.2f}", f"{peak - start:.2f}", f"{given:.2f}"]


def rates(found: Any) -> list[str]:
    """Of windows that other work did not disturb, rounded to hundreds: the others took more than three times as long."""
    one = part(found, "millions")
    quiet = [rate for rate in one["rates"] if rate > max(one["rates"]) / 3]
    return [str(one["last_to_first"]), f"{round(min(quiet), -2):,.0f}", f"{round(max(quiet), -2):,.0f}"]


def kept(found: Any) -> list[str]:
    ratios = [one["plain"]["ms"] / one["kept"]["ms"] for one in found["results"]]
    return [f"{min(ratios):.1f}", f"{max(ratios):.1f}"]


def apart(found: Any) -> list[str]:
    most = max(max(one["away"].values()) for one in found["peers"].values())
    return [f"{most:.0e}".replace("e-0", "e-")]


def quick(report: str) -> list[str]:
    """As the report's tile and text have it."""
    (best,) = re.findall(r"^- \*\*([\d.]+)×\*\* faster training step", report, re.MULTILINE)
    ((count, median),) = re.findall(r"median of (\d+) settings ([\d.]+)×", report)
    return [best, median, count]


def convs(page: str) -> list[str]:
    """Convs with a row that is exact, and those without one."""
    rows = re.findall(r"^\| (\w+)[^|]*\| (exact|refused)", page, re.MULTILINE)
    exact = {name for name, verdict in rows if verdict == "exact"}
    return [str(len(exact)), str(len({name for name, _ in rows} - exact))]


def dropout(page: str) -> list[str]:
    """Scores of one cell with other masks, out of docs/results.md."""
    names = ("dropout5", "dropout5-independent", "dropout2", "")
    found = [re.search(rf"^\| ogbg-moltox21-ds-ed{f'-{n}' * bool(n)} \|.*?([\d.]+) ± ", page, re.MULTILINE) for n in names]
    return [one[1] for one in found if one]
