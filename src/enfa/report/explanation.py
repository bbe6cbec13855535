"""Explanations as pictures: a panel of gradients and one of what is left out, nodes red where they raise the prediction.

RDKit draws molecules, matplotlib other graphs; either is imported where it is needed, since either may be missing.
"""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch_geometric.data import Data

from enfa.atomic import write_atomically
from enfa.attribution import Explanation
from enfa.report.extra import need_matplotlib
from enfa.report.pictures.layout import layout

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SUFFIXES", "draw_explanation"]

SUFFIXES = (".svg", ".png")
COLOURS = "RdBu_r"  # matplotlib's: blue below zero, white, red above
# of these colours those from 0.2 to 0.8, at equal distances: on darker ones bonds and letters would not be seen
_SHADES = np.array([[67, 147, 195], [146, 197, 222], [209, 229, 240], [247, 247, 247],
                    [253, 219, 199], [244, 165, 130], [214, 96, 77]]) / 255  # fmt: skip
_SIDE = 440  # pixels of a panel


def _panels(explanation: Explanation) -> list[tuple[str, np.ndarray]]:
    """What each shows; NaN where there is nothing to show."""
    found = [("gradient times input", explanation.gradient.numpy())]
    if explanation.left_out is not None:
        found.append(("change without its subgraph", explanation.left_out.numpy()))
    return found


def _colour(value: float, largest: float) -> tuple[float, float, float]:
    at = 3 * value / largest + 3 if largest > 0 else 3.0
    r, g, b = (float(np.interp(at, range(len(_SHADES)), shade)) for shade in _SHADES.T)
    return r, g, b


def draw_explanation(
    path: str | Path, explanation: Explanation, graph: Data | None = None, *, smiles: str | None = None, title: str = ""
) -> None:
    """Write an SVG or PNG file: of a molecule where its SMILES is given (needs rdkit), else of the graph.

    Every panel has a colour scale of its own, the same above and below zero. Atoms and nodes without a number have no colour.
    ``title`` says what is explained.
    """
    path = Path(path)
    if path.suffix not in SUFFIXES:
        raise ValueError(f"Expected a file ending in {' or '.join(SUFFIXES)} for the picture, got {path}")
    if smiles is not None:
        write_atomically(path, [_molecule(explanation, smiles, title, path.suffix == ".png")])
        return
    if graph is None:
        raise ValueError("Expected a graph, or the SMILES of a molecule, to draw, got neither")
    drawn = io.BytesIO()
    _graph(explanation, graph, title).savefig(drawn, format=path.suffix[1:])
    write_atomically(path, [drawn.getvalue()])


def _molecule(explanation: Explanation, smiles: str, title: str, png: bool) -> bytes:
    try:
        from rdkit import Chem
        from rdkit.Chem.Draw import rdMolDraw2D
    except ImportError as error:
        raise ImportError("Drawing molecules needs rdkit: pip install 'enfa[chem]'") from error
    molecule = Chem.MolFromSmiles(smiles)
    if molecule is None or molecule.GetNumAtoms() != len(explanation.gradient):
        raise ValueError(f"Expected a molecule of {len(explanation.gradient)} atoms to draw, got the SMILES {smiles!r}")
    panels = _panels(explanation)
    cls = rdMolDraw2D.MolDraw2DCairo if png else rdMolDraw2D.MolDraw2DSVG
    canvas: Any = cls(_SIDE * len(panels), _SIDE, _SIDE, _SIDE)
    options: Any = canvas.drawOptions()
    options.useBWAtomPalette()  # colours are for what atoms do
    options.highlightRadius, options.legendFontSize = 0.42, 17
    options.legendFraction = 0.16  # of a panel: three lines
    options.fillHighlights, options.atomHighlightsAreCircles = True, True
    atoms, colours, legends = [], [], []
    for name, values in panels:
        largest = float(np.nanmax(np.abs(values), initial=0.0))
        known = {v: _colour(value, largest) for v, value in enumerate(values.tolist()) if math.isfinite(value)}
        atoms.append(list(known))
        colours.append(known)
        legend = f"{name} (strongest: {largest:.2g})\nred raises the prediction, blue lowers it"
        legends.append(f"{title}\n{legend}" if title else legend)
    molecules = [rdMolDraw2D.PrepareMolForDrawing(molecule) for _ in panels]
    none: list[Any] = [[] for _ in panels]
    canvas.DrawMolecules(
        molecules, highlightAtoms=atoms, highlightAtomColors=colours, highlightBonds=none, legends=legends
    )  # fmt: skip
    canvas.FinishDrawing()
    text = canvas.GetDrawingText()
    return text if isinstance(text, bytes) else text.encode()


def _graph(explanation: Explanation, graph: Data, title: str) -> Figure:
    need_matplotlib()
    from matplotlib.cm import ScalarMappable
    from matplotlib.collections import LineCollection
    from matplotlib.colors import Normalize
    from matplotlib.figure import Figure

    nodes = int(graph.num_nodes or 0)
    edges = graph.edge_index.cpu().numpy()
    place, panels = layout(nodes, edges), _panels(explanation)
    figure = Figure(figsize=(4.8 * len(panels), 4.0), dpi=150, facecolor="white", layout="constrained")
    size = float(np.clip(2600 / max(nodes, 1), 25, 320))
    for axes, (name, values) in zip(figure.subplots(1, len(panels), squeeze=False)[0], panels):
        largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
        ends = place[np.unique(np.sort(edges.T, axis=1), axis=0)]
        axes.add_collection(LineCollection(list(ends), color="#999999", lw=1.2, zorder=1))
        scale = Normalize(-largest, largest)
        known = np.isfinite(values)
        axes.scatter(*place[~known].T, s=size, facecolor="white", edgecolor="#BBBBBB", zorder=2)
        axes.scatter(*place[known].T, s=size, c=values[known], cmap=COLOURS, norm=scale, edgecolor="#444444", zorder=2)
        if size >= 60:
            for v, (x, y) in enumerate(place):
                light = abs(values[v]) / largest < 0.6 if known[v] else True
                ink = "#222222" if light else "white"
                axes.text(x, y, str(v), ha="center", va="center_baseline", size=0.45 * math.sqrt(size), color=ink, zorder=3)
        axes.set_title(f"{name}\nred raises the prediction, blue lowers it", size=10)
        axes.set_aspect("equal")
        axes.margins(0.12)
        axes.axis("off")
        figure.colorbar(ScalarMappable(scale, COLOURS), ax=axes, shrink=0.7, format="%.2g")
    if title:
        figure.suptitle(title)
    return figure
