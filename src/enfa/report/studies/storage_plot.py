"""The storage figures: what is left of the conventional bags, and what it consists of."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from enfa.report.studies.storage import PARTS

__all__ = ["draw_storage"]

# Okabe and Ito's colours, which the colour-blind tell apart
POLICY_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
PART_COLOURS = dict(zip(PARTS, ("#0072B2", "#E69F00", "#009E73", "#BBBBBB")))
PART_NAMES = {
    "edges": "edges, or keys of rows",
    "pairs": "pivot hops, or readout",
    "features": "features",
    "rest": "original edges and the rest",
}


def draw_storage(results: Sequence[dict[str, Any]], layers: Sequence[int], layout: str) -> Figure:
    """``results`` are those of ``enfa storage --json``. Above: percent left, by layers. Below: what the bytes are."""
    names = list(dict.fromkeys(result["dataset"] for result in results))
    policies = list(dict.fromkeys(result["policy"] for result in results))
    columns = max(min(3, len(names)), 1)
    lines = -(-len(names) // columns)
    figure = Figure(figsize=(12, 2.8 * lines + 3.8 * len(policies) / 1.6 + 1), dpi=130, layout="constrained")
    halves: Any = figure.subfigures(2, 1, height_ratios=[2.8 * lines, 3.8 * len(policies) / 1.6 + 0.6])
    above, below = halves
    above.suptitle(f"Percent of the conventional bags' bytes that are left (layout: {layout})", weight="bold")
    grid = above.subplots(lines, columns, squeeze=False, sharey=True)
    for axes in grid.flat[len(names) :]:
        axes.set_visible(False)
    for name, axes in zip(names, grid.flat):
        _left(axes, [r for r in results if r["dataset"] == name], policies, layers)
        axes.set_title(name, size=11)
    least = min(100 - e.get("saved_percent", 0) for result in results for e in result["entries"])
    grid.flat[0].set_ylim(least / 1.5, 100)  # the others share it
    handles, titles = grid.flat[0].get_legend_handles_labels()
    above.legend(handles, titles, loc="outside lower center", ncols=len(policies), frameon=False)
    below.suptitle(f"What the bytes are (L = {layers[-1]}; MB in all above each bar)", weight="bold")
    bars = below.subplots(len(policies), 1, squeeze=False, sharex=True)
    for policy, axes in zip(policies, bars.flat):
        _parts(axes, [r for r in results if r["policy"] == policy], layers[-1])
        axes.set_ylabel(policy.replace("_", " "))
    handles, titles = bars.flat[0].get_legend_handles_labels()
    below.legend(handles, titles, loc="outside lower center", ncols=len(PARTS), frameon=False)
    return figure


def _left(axes: Axes, results: Sequence[dict[str, Any]], policies: Sequence[str], layers: Sequence[int]) -> None:
    for result in results:
        colour = POLICY_COLOURS[policies.index(result["policy"]) % len(POLICY_COLOURS)]
        for kind, style in (("ego", "--o"), ("distinct", "-s")):
            left = [100 - e["saved_percent"] for e in result["entries"] if e["kind"] == kind]
            title = f"{kind}, {result['policy'].replace('_', ' ')}"
            axes.plot(list(layers), left, style, color=colour, markersize=4, label=title)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%"))
    axes.set_xticks(list(layers))
    axes.set_xlabel("layers")
    axes.grid(alpha=0.3)


def _parts(axes: Axes, results: Sequence[dict[str, Any]], count: int) -> None:
    ticks, titles = [], []
    for k, result in enumerate(results):
        for j, kind in enumerate(("conventional", "ego", "distinct")):
            e = next(e for e in result["entries"] if e["kind"] == kind and e.get("layers", count) == count)
            at, bottom = 4 * k + j, 0.0
            for part in PARTS:
                height = 100 * e["parts"][part] / e["bytes"]
                label = PART_NAMES[part] if (k, j) == (0, 0) else None
                axes.bar(at, height, 0.85, bottom=bottom, color=PART_COLOURS[part], label=label)
                bottom += height
            axes.text(at, 102, f"{e['bytes'] / 1e6:,.3g}" if e["bytes"] < 1e8 else f"{e['bytes'] / 1e6:,.0f}",
                      ha="center", size=7)  # fmt: skip
            ticks.append(at)
            titles.append(kind + (f"\n{result['dataset']}" if j == 1 else "\n"))
    axes.set_xticks(ticks, titles, size=6.5)
    axes.set_ylim(0, 112)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}%" if value <= 100 else ""))
    axes.spines[["top", "right"]].set_visible(False)
