"""The picture of docs/architecture.md: the package from graphs to training, with the plan of one small graph.

``python -m enfa.report.architecture docs/images/architecture.svg`` draws it again.
"""

import sys
from typing import Any

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch, FancyBboxPatch, Rectangle
from torch_geometric.data import Data

from enfa.edits import NodeMarking
from enfa.nn.bag import Bag, make_plan
from enfa.plan.derived.lists import written_out
from enfa.report.pictures.drawing import GREY, INK, PALETTE
from enfa.report.program import ds_program

__all__ = ["draw_architecture", "example"]

PARTS = {
    "graphs": "PyG graphs as\nflat arrays",
    "edits": "a policy says how\nsubgraphs differ",
    "plan": "steps, and a table\nof rows for each",
    "batch": "compiled once,\ncut into batches",
    "nn": "model(bag) on\nwhatever plan",
    "training": "epochs, folds,\ncheckpoints",
    "cli": "enfa train,\ninspect, …",
}
PALE, LINE, BLUE = "#F4F5F7", "#777777", "#0072B2"
TINTS = "#CFE3F3", "#B3D3EA"  # of rows, by turns
WIDTH, HEIGHT = 10.6, 6.9  # inches, which are the units of everything here
NAMES, LEFT, RIGHT = 3.85, 5.5, 10.45  # where the names of steps begin, and the bars; and where these end

NOTE = (
    "A row: what one node of one subgraph,",
    "one subgraph or one graph has after a step.",
    "Those that read the same rows are one row.",
    "×n: how many pairs or subgraphs a row stands for. Arrows: which rows the blue ones read.",
)


def example() -> tuple[Data, np.ndarray, Bag]:
    """A triangle with two horns, where its nodes are drawn, and its plan: node marking, DS-GNN, two layers."""
    edges = torch.tensor([(0, 1), (0, 2), (1, 2), (1, 3), (2, 4)]).T
    graph = Data(x=torch.zeros(5, 1), edge_index=torch.cat([edges, edges.flip(0)], 1))
    place = np.array([[0.5, 0.0], [0.18, 0.45], [0.82, 0.45], [0.0, 1.0], [1.0, 1.0]])
    return graph, place, make_plan([graph], NodeMarking(), ds_program(2))


def _text(axes: Axes, x: float, y: float, text: str, size: float = 9.0, **style: Any) -> None:
    axes.text(x, y, text, size=size, **{"va": "center", "color": INK, **style})


def _arrow(axes: Axes, start: tuple[float, float], end: tuple[float, float], **style: Any) -> None:
    given = {"arrowstyle": "-|>", "mutation_scale": 9, "color": LINE, "lw": 1.0, "shrinkA": 0, "shrinkB": 0, **style}
    axes.add_patch(FancyArrowPatch(start, end, **given))


def _parts(axes: Axes, y: float) -> None:
    """The folders, in the order in which they may import each other."""
    wide, gap = 1.3, 0.2
    for k, (name, what) in enumerate(PARTS.items()):
        x = 0.15 + k * (wide + gap)
        here = name in ("graphs", "edits", "plan")  # what is drawn below
        box = FancyBboxPatch(
            (x, y - 0.42), wide, 0.84, boxstyle="round,pad=0,rounding_size=0.07", fc=PALE, ec=BLUE if here else LINE,
            lw=1.6 if here else 0.8,
        )  # fmt: skip
        axes.add_patch(box)
        _text(axes, x + wide / 2, y + 0.23, name, 10.5, ha="center", weight="bold")
        _text(axes, x + wide / 2, y - 0.13, what, 7.8, ha="center", linespacing=1.25)
        if k:
            _arrow(axes, (x - gap, y), (x, y))


def _graph(axes: Axes, graph: Data, at: np.ndarray, marked: int | None, radius: float) -> None:
    for a, b in graph.edge_index.T.tolist():
        if a < b:
            axes.plot(*zip(at[a], at[b]), color=LINE, lw=1.2, zorder=1)
    for v, point in enumerate(at):
        fill = PALETTE[0] if v == marked else GREY
        axes.add_patch(Circle(point, radius, fc=fill, ec=INK, lw=1.0, zorder=2))
        _text(axes, point[0], point[1], "abcde"[v], 72 * radius, ha="center", va="center_baseline", zorder=3)


def _bag(axes: Axes, graph: Data, place: np.ndarray, plan: Bag, top: float) -> None:
    """The graph, and below it its subgraphs."""
    _text(axes, 0.15, top, "A graph of 5 nodes", 10, weight="bold")
    _graph(axes, graph, place * [1.0, 0.85] + [1.05, top - 1.25], None, 0.115)
    _text(axes, 0.15, top - 1.75, f"and its bag: {plan.num_subgraphs} subgraphs,", 10, weight="bold")
    _text(axes, 0.15, top - 1.97, f"a node marked in each: {plan.num_pairs} (subgraph, node) pairs", 9)
    for s in range(plan.num_subgraphs):
        corner = np.array([0.3 + 1.1 * (s % 3), top - 2.95 - 1.15 * (s // 3)])
        _graph(axes, graph, place * [0.72, 0.62] + corner, s, 0.085)
        _text(axes, corner[0] + 0.36, corner[1] - 0.22, f"subgraph {s}", 8.3, ha="center", style="italic")


def _bar(axes: Axes, plan: Bag, number: int, y: float, tall: float) -> list[float]:
    """The rows of a step, each as wide as what it stands for; their middles. The one in blue has arrows."""
    table, step = plan.tables[number], plan.program.steps[number]
    copies = [1] * table.num_rows if table.copies is None else table.copies.tolist()
    total, rows = sum(copies), table.num_rows
    kinds, of_rows = (step.kind, "rows") if total > 1 else (step.kind.rstrip("s"), "row")
    _text(axes, NAMES, y + 0.1, f"{number} {step}", 10, weight="bold", family="monospace")
    _text(axes, NAMES, y - 0.12, f"{rows} {of_rows} for {total} {kinds}", 8.8)
    ends = LEFT + (RIGHT - LEFT) * np.concatenate([[0], np.cumsum(copies)]) / total
    for k, (count, begin, end) in enumerate(zip(copies, ends, ends[1:])):
        chosen = number > 0 and k == rows // 2
        fill = BLUE if chosen else TINTS[k % 2]
        axes.add_patch(Rectangle((begin, y - tall / 2), end - begin, tall, fc=fill, ec="white", lw=1.5))
        style = {"ha": "center", "va": "center_baseline", "color": "white" if chosen else INK}
        _text(axes, (begin + end) / 2, y, f"×{count}", 8.5 if end - begin > 0.25 else 6.5, **style)
    return list((ends[:-1] + ends[1:]) / 2)


def _reads(axes: Axes, plan: Bag, number: int, middles: list[list[float]], ys: list[float], tall: float) -> None:
    """What one row of a step reads: lines to rows of the table above."""
    table, above = plan.tables[number], plan.program.steps[number].reads[0]
    row = table.num_rows // 2
    if table.links is not None:
        first, last = table.links.in_ptr[row : row + 2].tolist()
        read = {int(table.links.self_row[row]), *table.links.in_row[first:last].tolist()}
    else:
        lists = written_out(table, plan.num_rows(above))
        read = set(lists.row[lists.ptr[row] : lists.ptr[row + 1]].tolist())
    end = (middles[number][row], ys[number] + tall / 2)
    for other in sorted(read):
        _arrow(axes, (middles[above][other], ys[above] - tall / 2), end, color=BLUE, lw=1.0, mutation_scale=8, zorder=3)


def draw_architecture() -> Figure:
    """The folders; below them a graph, its bag, and the tables of its plan with their row counts."""
    graph, place, plan = example()
    figure = Figure(figsize=(WIDTH, HEIGHT), dpi=150, facecolor="white")
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, WIDTH), ylim=(0, HEIGHT), aspect="equal")
    axes.axis("off")
    _parts(axes, HEIGHT - 0.6)
    top, tall = HEIGHT - 1.55, 0.36
    axes.plot([0.15, WIDTH - 0.15], [top + 0.28] * 2, color="#E0E0E0", lw=0.8)
    _bag(axes, graph, place, plan, top)
    _text(axes, NAMES, top, "Its plan for a DS-GNN of two layers: steps, and a table of rows for each", 10, weight="bold")
    ys = [top - 0.5 - 1.05 * number for number in range(len(plan.tables))]
    middles = [_bar(axes, plan, number, y, tall) for number, y in enumerate(ys)]
    for number in range(1, len(plan.tables)):
        _reads(axes, plan, number, middles, ys, tall)
    for line, text in enumerate(NOTE):
        _text(axes, 0.15 if line < 3 else NAMES, (0.6, 0.41, 0.22, 0.22)[line], text, 8.8)
    return figure


def main(path: str = "docs/images/architecture.svg") -> None:
    with matplotlib.rc_context({"svg.hashsalt": "enfa"}):  # the same file each time
        draw_architecture().savefig(path, metadata={"Date": None} if path.endswith(".svg") else None)


if __name__ == "__main__":
    main(*sys.argv[1:])
