"""How a bag is drawn: columns are subgraphs, lines are tables."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.patches import Circle

from enfa.edits import DELETE
from enfa.report.pictures.sharing import Sharing

__all__ = ["Drawing"]

# Okabe and Ito's colours, which the colour-blind tell apart, then lighter ones of Tol's; grey is for base rows
PALETTE = (
    "#E69F00", "#56B4E9", "#009E73", "#F0E442", "#CC79A7", "#0072B2", "#D55E00",
    "#BBCC33", "#99DDFF", "#FFAABB", "#AAAA00", "#EE8866", "#44BB99", "#77AADD",
)  # fmt: skip
DARK = ("#009E73", "#0072B2", "#D55E00")  # with white numbers
GREY, INK, FAINT = "#D9D9D9", "#222222", "#B5B5B5"
KEPT: dict[str, Any] = {"color": "#777777", "lw": 0.06}  # how an edge is drawn, its width in units
MARKED: dict[str, Any] = {"color": INK, "lw": 0.18}
DELETED: dict[str, Any] = {"color": FAINT, "lw": 0.05, "linestyle": (0, (1, 1.5))}
RING = 1.36  # round a marked node, in radii: off its outline, and off those of its neighbours
EXPLANATION = "A circle is a row: one node of one subgraph, after one layer. Equal numbers in a line are the same row."


class Drawing:
    """One Axes for everything, in units of an edge's length; text and margins in inches."""

    def __init__(self, sharing: Sharing, place: np.ndarray, names: list[str], bag: int) -> None:
        """``bag``: how many subgraphs there are, those included that are not drawn."""
        self.sharing, self.place, self.names, self.bag = sharing, place, names, bag
        gap = np.linalg.norm(place[:, None] - place[None], axis=2) + 9.0 * np.eye(len(place))
        self.radius = float(np.clip(0.48 * gap.min(), 0.22, 0.37))  # of a node, where edges are about 1 long
        width, self.height = place.max(0) + 2 * self.radius + 1.0
        self.columns, self.lines = len(names) + 1, len(sharing.base)
        self.scale = min(0.36, 9.2 / (self.columns * width))  # inches per unit
        self.width = self._inches(9.2 / self.columns)  # the title wants 9.2 inches, however small the graph
        self.point = 72 * self.scale  # points per unit
        self.left = self._inches(1.5)  # room for what a line is called
        self.right = self.left + self.columns * self.width
        self.once = False  # whether a row is drawn in a single place, which leaves it white

    def _inches(self, inches: float) -> float:
        return inches / self.scale

    def _edge(self, style: dict[str, Any]) -> dict[str, Any]:
        return {**style, "lw": style["lw"] * self.point}

    def draw(self, title: str) -> Figure:
        top, bottom, right = self._inches(1.15), self._inches(0.6), self.right + self._inches(0.1)
        size = right * self.scale, (self.lines * self.height + top + bottom) * self.scale
        figure = Figure(figsize=size, dpi=200, facecolor="white")
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set(xlim=(0, right), ylim=(-self.lines * self.height - bottom, top), aspect="equal")
        axes.axis("off")

        def text(x: float, inches: float, what: str, **style: Any) -> None:
            axes.text(x, self._inches(inches), what, va="center", color=INK, **style)

        text(self._inches(0.15), 0.9, title, size=14.5, weight="bold")
        text(self._inches(0.15), 0.57, EXPLANATION, size=10.5)
        whole = "the one subgraph" if self.bag == 1 else f"all {self.bag:,} subgraphs"
        text(self._inches(0.15), 0.14, whole, size=10.5, style="italic")
        for column, name in enumerate(["unedited graph", *self.names]):
            text(self.left + (column + 0.5) * self.width, 0.14, name, ha="center", size=10.5, style="italic")
        for line in range(self.lines):
            self._line(axes, line)
        self._legend(axes, -self.lines * self.height - bottom / 2)
        return figure

    def _line(self, axes: Axes, line: int) -> None:
        s, y = self.sharing, -(line + 1) * self.height
        axes.plot([self._inches(0.1), self.right], [y + self.height] * 2, color="#E0E0E0", lw=0.8)
        x, middle = self._inches(0.15), y + self.height / 2
        name = "input" if line == 0 else f"after layer {line}"
        axes.text(x, middle + self._inches(0.22), name, size=12, weight="bold", va="center", color=INK)
        figures = f"{s.conventional:,} rows,\n{s.distinct[line]:,} distinct"
        axes.text(x, middle - self._inches(0.12), figures, size=10.5, va="center", color=INK, linespacing=1.35)
        base = set(s.base[line].tolist())
        shown = np.concatenate([s.base[line], s.rows[line].reshape(-1)])
        numbers, often = np.unique(shown, return_counts=True)
        shared = [n for n, k in zip(numbers.tolist(), often) if n >= 0 and n not in base and k > 1]
        fill = dict.fromkeys(base, GREY) | {n: PALETTE[k % len(PALETTE)] for k, n in enumerate(shared)}
        self.once |= len(set(numbers[numbers >= 0].tolist()) - set(fill)) > 0
        met: set[int] = set()
        for column in range(self.columns):
            rows = s.base[line] if column == 0 else s.rows[line, column - 1]
            marks = np.zeros_like(rows) if column == 0 else s.node_mark[column - 1]
            edges = np.zeros(s.edges.shape[1], int) if column == 0 else s.edge_value[column - 1]
            middle_of = np.array([self.left + (column + 0.5) * self.width, middle])
            self._panel(axes, self.place - self.place.max(0) / 2 + middle_of, rows, marks, edges, fill, met)

    def _panel(
        self,
        axes: Axes,
        at: np.ndarray,
        rows: np.ndarray,
        marks: np.ndarray,
        edges: np.ndarray,
        fill: dict[int, str],
        met: set[int],
    ) -> None:
        # an edge and its reverse are one line
        pairs = np.unique(np.column_stack([np.sort(self.sharing.edges.T, axis=1), edges]), axis=0)
        ends, edges = at[pairs[:, :2]], pairs[:, 2]
        for chosen, style in ((edges == 0, KEPT), (edges > 0, MARKED), (edges == DELETE, DELETED)):
            axes.add_collection(LineCollection(list(ends[chosen]), zorder=1, **self._edge(style)))
        for v, row in enumerate(rows.tolist()):
            if row < 0:
                axes.add_patch(Circle(at[v], 0.3 * self.radius, color=FAINT, zorder=2))
                continue
            if marks[v] > 0:
                ring = Circle(at[v], RING * self.radius, fc="white", ec=INK, lw=0.06 * self.point, zorder=2)
                axes.add_patch(ring)
            new = row not in met
            met.add(row)
            colour = fill.get(row, "white")
            edge = {"ec": INK, "lw": 0.06 * self.point} if new else {"ec": "white", "lw": 0.03 * self.point}
            axes.add_patch(Circle(at[v], self.radius, fc=colour, zorder=3, **edge))
            font = self.radius * self.point * (1.1 if row < 100 else 0.8)
            if font >= 3:
                ink = "white" if colour in DARK else INK
                style = {"size": font, "ha": "center", "va": "center_baseline", "zorder": 4, "color": ink}
                axes.text(at[v, 0], at[v, 1], str(row), **style)

    def _legend(self, axes: Axes, y: float) -> None:
        """Only what occurs in the picture, each as it is drawn there."""
        s = self.sharing
        outlined, plain = {"ec": INK, "lw": 1.5}, {"ec": "white", "lw": 0.5}
        circles: list[tuple[str, list[dict[str, Any]]]] = [
            ("computed", [{"fc": fill, **outlined} for fill in [GREY, PALETTE[1], "white"][: 2 + self.once]]),
            ("reused, a colour for each row", [{"fc": fill, **plain} for fill in PALETTE[:3]]),
            ("row of the unedited graph", [{"fc": GREY, **plain}]),
        ]
        if (s.node_mark > 0).any():
            circles.append(("marked node", [{"fc": PALETTE[0], "ringed": True, **plain}]))
        if (s.rows < 0).any():
            circles.append(("deleted node", [{"fc": FAINT, "radius": 0.3, **plain}]))
        lines = []
        if (s.edge_value > 0).any():
            lines.append(("marked edge", MARKED))
        if ((s.edge_value < 0) & (s.rows[0][:, s.edges] >= 0).all(1)).any():
            lines.append(("deleted edge", DELETED))
        x, radius = self._inches(0.27), self._inches(0.085)

        def name(x: float, text: str) -> float:
            axes.text(x, y, text, size=10.5, va="center", color=INK)
            return x + self._inches(0.42 + 0.068 * len(text))

        for text, samples in circles:
            for style in samples:
                if style.pop("ringed", False):
                    axes.add_patch(Circle((x, y), RING * radius, fc="white", ec=INK, lw=1.5, zorder=2))
                axes.add_patch(Circle((x, y), radius * style.pop("radius", 1.0), zorder=3, **style))
                x += self._inches(0.2)
            x = name(x - self._inches(0.03), text)
        for text, style in lines:
            axes.plot([x - radius, x + 3 * radius], [y, y], **self._edge(style))
            x = name(x + self._inches(0.36), text)
