"""Rows per layer as a picture."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

__all__ = ["draw_rows"]


def draw_rows(found: dict[str, Any], title: str) -> Figure:
    """Rows per layer on a log scale, from what ``inspect_bags`` returns; the legend has the sums over layers."""
    figure = Figure(figsize=(7, 4.2), dpi=150, layout="constrained")
    axes, layers = figure.subplots(), np.arange(1, found["layers"] + 1)
    # Okabe and Ito's colours, which the colour-blind tell apart
    for key, name, colour, style in (
        ("conventional", "conventional", "#222222", {"marker": "D"}),
        # drawn wide, because the next one often covers it
        ("rows_within_hops", "within i hops of an edit", "#56B4E9", {"marker": "o", "markersize": 10, "linewidth": 5}),
        ("affected", "differ from the unedited graph", "#D55E00", {"marker": "^"}),
        ("distinct", "distinct", "#009E73", {"marker": "s"}),
    ):
        axes.plot(layers, found[key], color=colour, label=f"{name}: {sum(found[key]):,}", **style)  # type: ignore[arg-type]
    axes.set_yscale("symlog" if min(found["affected"]) == 0 else "log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set(xlabel="layer i", ylabel="rows after layer i")
    axes.grid(alpha=0.3)
    axes.set_title(title, size=11, weight="bold", loc="left")
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure
