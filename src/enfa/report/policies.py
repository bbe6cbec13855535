"""A small picture of what a policy does: the first subgraphs of a bag.

``python -m enfa.report.policies docs/policies`` draws those of the documentation again.
"""

import sys
from pathlib import Path

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from torch_geometric.data import Data

from enfa.edits import (
    DELETE,
    EdgeDeletion,
    EdgeMarking,
    Edits,
    EgoNets,
    MostCentral,
    NeighborMarking,
    NodeDeletion,
    NodeMarking,
    PairMarking,
    Policy,
    Reconstruction,
    Subsample,
)
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet, check_graphs

__all__ = ["PICTURES", "draw_policies", "draw_policy"]

_INK, _PALE, _GONE = "#30343b", "#e9ebee", "#c9cdd3"
_MARKS = ("#d1495b", "#edae49", "#66a182", "#2e86ab", "#8d6a9f", "#5c6b73", "#b56576", "#6d9dc5")

PICTURES: dict[str, Policy] = {
    "node_marking": NodeMarking(),
    "node_marking_distances": NodeMarking(distances=1),
    "node_deletion": NodeDeletion(),
    "node_deletion_isolate": NodeDeletion(isolate=True),
    "edge_deletion": EdgeDeletion(),
    "edge_marking": EdgeMarking(),
    "edge_marking_degrees": EdgeMarking("degrees"),
    "edge_marking_distances": EdgeMarking("distances"),
    "ego_nets": EgoNets(1),
    "ego_nets_mark": EgoNets(1, mark=True),
    "ego_nets_isolate": EgoNets(1, mark=True, isolate=True),
    "ego_nets_distances": EgoNets(2, mark="distances"),
    "neighbor_marking": NeighborMarking(1),
    "neighbor_marking_distances": NeighborMarking(2, mark="distances"),
    "pair_marking": PairMarking(),
    "pair_marking_distances": PairMarking(1, mark="distances"),
    "reconstruction": Reconstruction(4, max_subgraphs=4),
    "subsample": Subsample(NodeMarking(), count=4),
    "most_central": MostCentral(NodeMarking(), count=3),
}


def example_graph() -> tuple[Data, np.ndarray]:
    """A triangle and a square joined by an edge, and where to draw its nodes."""
    pairs = torch.tensor([[0, 1], [0, 2], [1, 2], [2, 3], [3, 4], [4, 5], [5, 6], [3, 6]]).T
    places = np.array([[0.0, 1.0], [0.0, 0.0], [0.85, 0.5], [1.75, 0.5], [2.35, 1.1], [2.95, 0.5], [2.35, -0.1]])
    return Data(x=torch.zeros(7, 1), edge_index=torch.cat([pairs, pairs.flip(0)], 1)), places


def _on_a_circle(nodes: int) -> np.ndarray:
    angle = np.linspace(0, 2 * np.pi, nodes, endpoint=False)
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def _draw_subgraph(ax: Axes, graphs: GraphSet, edits: Edits, sub: int, places: np.ndarray) -> None:
    """One subgraph: marks in colour, what is deleted in dashes."""
    node = np.full(graphs.num_nodes, DELETE if edits.kept[sub] else 0)
    listed = slice(edits.node_ptr[sub], edits.node_ptr[sub + 1])
    node[edits.node[listed]] = edits.node_value[listed]
    edge = np.zeros(graphs.num_edges, np.int64)
    listed = slice(edits.edge_ptr[sub], edits.edge_ptr[sub + 1])
    edge[edits.edge[listed]] = edits.edge_value[listed]
    edge[(node[graphs.src] == DELETE) | (node[graphs.dst] == DELETE)] = DELETE
    for e in np.flatnonzero(graphs.src < graphs.dst):
        x, y = places[[graphs.src[e], graphs.dst[e]]].T
        if edge[e] == DELETE:
            ax.plot(x, y, color=_GONE, linewidth=0.8, linestyle=(0, (2, 3)), zorder=1)
        elif edge[e]:
            ax.plot(x, y, color=_MARKS[(edge[e] - 1) % len(_MARKS)], linewidth=3.5, zorder=2)
        else:
            ax.plot(x, y, color=_INK, linewidth=1.2, zorder=1)
    for v, (x, y) in enumerate(places):
        gone, mark = node[v] == DELETE, int(node[v])
        ax.scatter(
            [x], [y], s=95, zorder=3, linewidth=0.8 if gone else 1.2, linestyle=(0, (2, 2)) if gone else "-",
            color="white" if gone else _MARKS[(mark - 1) % len(_MARKS)] if mark else _PALE,
            edgecolor=_GONE if gone else _INK,
        )  # fmt: skip
        if mark > 0 and len(edits.marks) > 2:
            ax.text(x, y, str(mark - 1), ha="center", va="center", fontsize=6.5, color="white", zorder=4)
    margin = 0.25
    ax.set_xlim(places[:, 0].min() - margin, places[:, 0].max() + margin)
    ax.set_ylim(places[:, 1].min() - margin, places[:, 1].max() + margin)
    ax.set_aspect("equal")
    ax.axis("off")


def draw_policy(policy: Policy, graph: Data | None = None, *, places: np.ndarray | None = None, subgraphs: int = 4) -> Figure:
    """The first subgraphs of a graph's bag, side by side. Without a graph: those of :func:`example_graph`.

    Marks are coloured, and numbered from 0 where there are several; what is deleted is dashed.
    """
    if graph is None:
        graph, places = example_graph()
    graphs = check_graphs([graph])
    edits = check_edits(graphs, policy.edits(graphs), repr(policy))
    places = _on_a_circle(graphs.num_nodes) if places is None else places
    count = min(subgraphs, edits.num_subgraphs)
    figure = Figure(figsize=(1.9 * count, 1.0), dpi=150)
    FigureCanvasAgg(figure)
    for s in range(count):
        _draw_subgraph(figure.add_subplot(1, count, s + 1), graphs, edits, s, places)
    figure.subplots_adjust(left=0.01, right=0.99, top=0.98, bottom=0.02, wspace=0.08)
    return figure


def draw_policies(folder: str | Path) -> list[Path]:
    """The pictures of the documentation, one file per entry of ``PICTURES``."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}.png" for name in PICTURES]
    for path, policy in zip(paths, PICTURES.values()):
        draw_policy(policy).savefig(path, metadata={"Software": None})
    return paths


if __name__ == "__main__":
    for written in draw_policies(sys.argv[1]):
        print(written)
