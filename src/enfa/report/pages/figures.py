"""Drawing with matplotlib, once for the page (SVG that follows its light or dark colours) and once as PNG."""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Canvas
from matplotlib.lines import Line2D
from matplotlib.ticker import LogLocator, NullLocator

from enfa.report.show.page import Figure, Panel

__all__ = ["COLOURS", "figure_png", "grouped", "log_axis", "panel_svg"]

# Okabe and Ito's, which the colour-blind tell apart, and a shape each. In the page each becomes a variable of its CSS.
COLOURS = {"full": "#d55e00", "ego": "#b8860b", "distinct": "#0072b2", "edges": "#882255",
           "pairs": "#ddaa55", "features": "#44aa99", "rest": "#7f7f8a"}  # fmt: skip
SHAPES = {"full": "s", "ego": "^", "distinct": "o"}
INK, GRID = "#2b2b33", "#dddde3"
VARIABLES = {**{v: f"var(--{k})" for k, v in COLOURS.items()}, INK: "currentColor", GRID: "var(--grid)"}
STYLE: Any = {
    "font.size": 9, "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
    "axes.edgecolor": GRID, "axes.labelcolor": INK, "text.color": INK, "xtick.color": INK, "ytick.color": INK,
    "xtick.labelcolor": INK, "ytick.labelcolor": INK, "axes.spines.top": False, "axes.spines.right": False,
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": GRID, "grid.linewidth": 0.7, "axes.axisbelow": True,
    "xtick.major.size": 0, "ytick.major.size": 0, "ytick.minor.size": 0, "svg.fonttype": "none",
    "svg.hashsalt": "enfa", "legend.frameon": False,
}  # fmt: skip

Value = tuple[float, float, float]  # middle, low, high
GAP = 1.2


def log_axis(
    axis: Axis, scale: Callable[..., Any], limits: Callable[[], tuple[float, float]], set_limits: Callable[..., Any],
    unit: str = "",
) -> None:  # fmt: skip
    """A log axis with some room, and with a few round numbers on it however short it is."""
    scale("log")
    low, high = limits()
    low, high = low / 1.25, high * 1.25
    set_limits(low, high)
    decades = np.log10(high / low)
    steps = (1.0, 2.0, 5.0) if decades < 2 else (1.0, 3.0) if decades < 3 else (1.0,)
    axis.set_major_locator(LogLocator(subs=steps, numticks=12))
    axis.set_major_formatter(lambda v, _: (f"{v:,.0f}" if v >= 1 else f"{v:g}") + unit)
    axis.set_minor_locator(NullLocator())


def grouped(
    axes: Axes,
    values: Mapping[str, Mapping[str, Mapping[int, Value | None]]],
    unit: str,
) -> None:
    """Kind -> group -> L -> value, on a log axis: one group of points beside the other, L from left to right.

    None is a value that could not be had: it says so at the top of its column.
    """
    groups = list(next(iter(values.values())))
    layers = sorted({layer for by in values.values() for some in by.values() for layer in some})
    step = len(layers) - 1 + GAP
    places = {(g, n): k * step + i for k, g in enumerate(groups) for i, n in enumerate(layers)}
    said: set[float] = set()
    for kind, by_group in values.items():
        colour = COLOURS[kind]
        for group, some in by_group.items():
            known = [(places[group, n], v) for n, v in some.items() if v is not None]
            if known:
                x = np.array([at for at, _ in known])
                middle, low, high = np.array([v for _, v in known]).T
                axes.plot(x, middle, color=colour, marker=SHAPES[kind], ms=4.2, lw=1.6, zorder=3)
                axes.errorbar(
                    x, middle, [np.maximum(middle - low, 0), np.maximum(high - middle, 0)], fmt="none", ecolor=colour,
                    elinewidth=1, capsize=2, zorder=2,
                )  # fmt: skip
            missing = [places[group, n] for n, v in some.items() if v is None]
            for at in set(missing) - said:  # where none of the plans fits, once is enough
                said.add(at)
                axes.text(at, 0.98, "does not fit", color=colour, rotation=90, fontsize=7.5, ha="center", va="top",
                          transform=axes.get_xaxis_transform())  # fmt: skip
    log_axis(axes.yaxis, axes.set_yscale, axes.get_ylim, axes.set_ylim)
    axes.set_xlim(-0.6, max(places.values()) + 0.6)
    axes.set_xticks(list(places.values()), [str(n) for _, n in places], fontsize=8)
    for k, group in enumerate(groups):
        axes.text(k * step + (len(layers) - 1) / 2, -0.16, group, ha="center", va="top", fontsize=8.5,
                  transform=axes.get_xaxis_transform())  # fmt: skip
    axes.set_ylabel(unit)


def _panel(panel: Panel, axes: Axes) -> None:
    panel.draw(axes)
    axes.set_title(panel.title, pad=8)


def panel_svg(panel: Panel, name: str) -> str:
    """The panel as an <svg> element; ``name`` keeps its ids apart from those of others on the page."""
    with rc_context(STYLE):
        canvas = Canvas(figsize=panel.size, layout="constrained")
        _panel(panel, canvas.add_subplot())
        file = io.StringIO()
        canvas.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.S)
    text = re.sub(r'<svg [^>]*?viewBox="([^"]*)"[^>]*>', rf'<svg viewBox="\1" role="img" aria-label="{escape(panel.title)}">',
                  text, count=1)  # fmt: skip
    text = re.sub(r'\bid="([^"]*)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]*)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]*)"', rf'href="#{name}-\1"', text)
    text = re.sub(r"font-family: [^;\"]*;?", "", text)
    text = re.sub(r"(font: [0-9a-z ]*[0-9.]+px) [^;\"]*", r"\1 inherit-font", text).replace(
        "inherit-font", "system-ui, sans-serif"
    )
    for colour, variable in VARIABLES.items():
        text = text.replace(colour, variable)
    return text


def figure_png(figure: Figure, path: Path) -> None:
    """All panels in one picture, with the legend above and the note below."""
    columns = min(3, len(figure.panels))
    lines = -(-len(figure.panels) // columns)
    width, height = figure.panels[0].size
    size = columns * width, lines * height + 1.0
    with rc_context(STYLE):
        canvas = Canvas(figsize=size, dpi=110, facecolor="white", layout="constrained")
        parts: Any = canvas.subfigures(3, 1, height_ratios=[0.55, lines * height, 0.55])
        above, inside, below = parts
        handles = [Line2D([], [], color=COLOURS[c], marker=SHAPES.get(c, "s"), lw=1.6, label=t) for t, c in figure.legend]
        above.text(0.01, 0.95, figure.title, fontsize=12.5, fontweight="bold", va="top")
        above.legend(handles=handles, loc="lower left", ncols=len(handles))
        axes: Sequence[Axes] = np.ravel(inside.subplots(lines, columns))  # type: ignore[assignment]
        for panel, ax in zip(figure.panels, axes):
            _panel(panel, ax)
        for ax in axes[len(figure.panels) :]:
            ax.axis("off")
        below.text(0.01, 0.5, fill(figure.note, int(size[0] * 17)), fontsize=7.5, va="center")
        canvas.savefig(path)
