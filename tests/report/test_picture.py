from collections import defaultdict
from itertools import pairwise
from pathlib import Path

import matplotlib.image
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Circle
from torch_geometric.data import Data

from enfa import EdgeDeletion, EdgeMarking, EgoNets, NodeDeletion, NodeMarking, Policy
from enfa.report.picture import draw_sharing, main, molecule
from enfa.report.pictures.drawing import GREY
from enfa.report.program import ds_program
from enfa.testing import degenerate_graphs


def numbered(figure: Figure) -> dict[tuple[int, str], list[str]]:
    """By (line of the picture, number in the circle): the colours of the circles."""
    (axes,) = figure.axes
    circles = {tuple(c.center): c for c in axes.patches if isinstance(c, Circle) and c.get_fill()}
    lines = sorted({line.get_ydata()[0] for line in axes.lines}, reverse=True)  # a rule above each
    found = defaultdict(list)
    for text in axes.texts:
        if text.get_text().isdigit():
            line = sum(text.get_position()[1] < y for y in lines) - 1
            found[line, text.get_text()].append(to_hex(circles[tuple(text.get_position())].get_facecolor()))
    return dict(found)


def test_one_colour_for_one_row() -> None:
    graph, positions = molecule()
    found = numbered(draw_sharing(graph, NodeMarking(), ds_program(2), subgraphs=[8, 9, 1, 5], positions=positions))
    assert sum(map(len, found.values())) == 3 * 5 * 10
    assert all(len(set(colours)) == 1 for colours in found.values())
    coloured = {key: colours for key, colours in found.items() if colours[0] not in (GREY.lower(), "#ffffff")}
    assert all(len(colours) > 1 for colours in coloured.values())
    for line in range(3):
        used = [colours[0] for key, colours in coloured.items() if key[0] == line]
        assert len(set(used)) == len(used), "two rows of a line have one colour"
    # the marked methyls after two layers: in subgraphs 8 and 9 only
    assert len(found[2, "29"]) == 2


def test_rows_that_occur_once_have_no_colour() -> None:
    graph, positions = molecule()
    found = numbered(draw_sharing(graph, NodeMarking(), ds_program(2), subgraphs=[1], positions=positions))
    affected = [colours for colours in found.values() if colours[0] != GREY.lower()]
    assert len(affected) == 1 + 3 + 6  # reached in tables 0, 1 and 2
    assert all(colours == ["#ffffff"] for colours in affected)


POLICIES = [NodeMarking(), NodeDeletion(), EdgeDeletion(), EdgeMarking(), EgoNets(1, mark=True)]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_the_legend_names_what_occurs_and_stays_apart(policy: Policy) -> None:
    graph, positions = molecule()
    figure = draw_sharing(graph, policy, ds_program(1, edges=len(policy.edge_marks[0]) > 0), positions=positions)
    (axes,) = figure.axes
    renderer = FigureCanvasAgg(figure).get_renderer()
    low = min(text.get_position()[1] for text in axes.texts)
    names = [text for text in axes.texts if text.get_position()[1] == low]
    expected = {
        "NodeMarking": ["marked node"], "NodeDeletion": ["deleted node"], "EdgeDeletion": ["deleted edge"],
        "EdgeMarking": ["marked edge"], "EgoNets": ["marked node", "deleted node"],
    }[type(policy).__name__]  # fmt: skip
    assert [text.get_text() for text in names[3:]] == expected
    words = [text.get_window_extent(renderer) for text in names]
    for one, next_one in pairwise(words):
        assert one.x1 + 40 < next_one.x0  # pixels: a circle's room
    assert words[-1].x1 < figure.bbox.x1
    samples = [c for c in axes.patches if isinstance(c, Circle) and c.center[1] == low]
    for circle in samples:
        box = circle.get_window_extent(renderer)
        assert not any(box.x0 < word.x1 and word.x0 < box.x1 for word in words)


@pytest.mark.parametrize("policy", [NodeMarking(), NodeDeletion(), EdgeDeletion()], ids=repr)
def test_any_graph(policy: Policy) -> None:
    for name, graph in degenerate_graphs(channels=1).items():
        if name == "no nodes":
            with pytest.raises(ValueError, match="a graph with nodes"):
                draw_sharing(graph, policy, ds_program(1))
        else:
            draw_sharing(graph, policy, ds_program(1, degrees=True)).canvas.draw()


def test_says_what_cannot_be_drawn() -> None:
    graph = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match=r"subgraphs from 0 to 1, got \[2\]"):
        draw_sharing(graph, NodeMarking(), ds_program(1), subgraphs=[2])
    with pytest.raises(ValueError, match=r"positions of shape \[2, 2\], got \[3, 2\]"):
        draw_sharing(graph, NodeMarking(), ds_program(1), positions=torch.zeros(3, 2).numpy())


def test_command_writes_the_picture(tmp_path: Path) -> None:
    main(str(tmp_path / "idea.png"))
    assert matplotlib.image.imread(tmp_path / "idea.png").shape == (1117, 2160, 4)
