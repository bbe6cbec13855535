"""A picture of what is told apart, over layers. Not imported with the package: it loads matplotlib."""

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["draw_power"]

# Okabe and Ito's colours, which the colour-blind tell apart
_COLOURS = ("#222222", "#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
_MARKERS = "os^Dv<>"


def draw_power(found: Mapping[str, dict[str, Any]]) -> Figure:
    """From what :meth:`Power.to_dict` gives, by title: of one its categories, of several the sum of each."""
    figure = Figure(figsize=(7, 4.2), dpi=150, layout="constrained")
    axes, first = figure.subplots(), next(iter(found.values()))
    if len(found) == 1:
        lines = {f"{name} (of {first['sizes'][name]})": (first["layers"], row) for name, row in first["counts"].items()}
        axes.set_title(next(iter(found)), size=11, weight="bold", loc="left")
    else:
        lines = {name: (one["layers"], one["counts"]["all"]) for name, one in found.items()}
    for number, (name, (layers, row)) in enumerate(lines.items()):
        style: dict[str, Any] = {"color": _COLOURS[number % len(_COLOURS)], "marker": _MARKERS[number % len(_MARKERS)]}
        style["linestyle"] = "-" if number < len(_COLOURS) else "--"  # colours come round again
        width = 1.5 + 3 * (len(lines) - number) / len(lines)  # later ones may cover earlier ones
        axes.plot(layers, row, label=name, linewidth=width, **style)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    what = "pairs told apart" if first["of"] == "pairs" else "classes of graphs"
    axes.set(xlabel="layers", ylabel=f"{what}, of {first['sizes']['all']}")
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    return figure
