"""The idea as a picture: the bag of a graph, layer by layer, each row in the colour of those that equal it.

``python -m enfa.report.picture docs/images/idea.png`` draws the picture of the README.
"""

import sys
from collections.abc import Sequence

import numpy as np
import torch
from matplotlib.figure import Figure
from torch_geometric.data import Data

from enfa.edits import NodeMarking, Policy
from enfa.plan.step import Program
from enfa.report.pictures.drawing import Drawing
from enfa.report.pictures.layout import layout
from enfa.report.pictures.sharing import sharing_of
from enfa.report.program import ds_program

__all__ = ["draw_sharing", "molecule"]

TITLE = "Most rows of a subgraph GNN are the same row: ENFA computes each distinct one once."


def draw_sharing(
    graph: Data,
    policy: Policy,
    program: Program,
    *,
    subgraphs: Sequence[int] | None = None,
    positions: np.ndarray | None = None,
    title: str = TITLE,
) -> Figure:
    """Draw the unedited graph and some subgraphs of its bag: columns are subgraphs, lines are tables 0…L.

    Args:
        program: such as ``ds_program(2)``, or what :func:`enfa.trace` finds of a model that does not mix subgraphs.
        subgraphs: which ones; four spread over the bag by default.
        positions: [n, 2], edges about 1 long; laid out by default.
    """
    whole = sharing_of(graph, policy, program)
    count = whole.rows.shape[1]
    chosen = np.unique(np.linspace(0, count - 1, min(4, count)).astype(int)) if subgraphs is None else subgraphs
    chosen = np.asarray(chosen, np.int64)
    if len(chosen) == 0 or chosen.min() < 0 or chosen.max() >= count:
        raise ValueError(f"Expected subgraphs from 0 to {count - 1}, got {chosen.tolist()}")
    shown = whole.of(chosen)
    nodes = shown.base.shape[1]
    if nodes == 0:
        raise ValueError("Expected a graph with nodes to draw, got one without")
    place = layout(nodes, shown.edges) if positions is None else np.asarray(positions, float)
    if place.shape != (nodes, 2):
        raise ValueError(f"Expected positions of shape [{nodes}, 2], got {list(place.shape)}")
    return Drawing(shown, place - place.min(0), [f"subgraph {s}" for s in chosen], count).draw(title)


def molecule() -> tuple[Data, np.ndarray]:
    """Isopropoxybenzene, a ring and a fork joined by an oxygen, and where its atoms are drawn."""
    bonds = torch.tensor([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 6), (6, 7), (7, 8), (7, 9)]).T
    x = torch.zeros(10, 1, dtype=torch.long)  # carbon
    x[6] = 1  # oxygen
    angles = np.deg2rad([0, 60, 120, 180, 240, 300])
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    high = np.sqrt(0.75)
    chain = np.array([[2, 0], [2.5, high], [3.5, high], [2, 2 * high]])
    return Data(x=x, edge_index=torch.cat([bonds, bonds.flip(0)], 1)), np.concatenate([ring, chain])


def main(path: str = "docs/images/idea.png") -> None:
    graph, positions = molecule()
    figure = draw_sharing(graph, NodeMarking(), ds_program(2), subgraphs=[8, 9, 1, 5], positions=positions)
    figure.savefig(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
