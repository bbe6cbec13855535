import sys
from importlib import import_module
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from enfa.attribution import Explanation
from enfa.report.explanation import COLOURS, _colour, draw_explanation

GRAPH = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))


def found(*left_out: float) -> Explanation:
    gradient = torch.tensor([1.0, -2.0, 0.0], dtype=torch.float64)
    return Explanation(torch.zeros(1), 0, None, gradient, torch.tensor(left_out) if left_out else None)


def colours(path: Path) -> tuple[int, int]:
    """How many pixels are red, and how many blue."""
    red, _, blue = np.moveaxis(matplotlib.image.imread(path)[..., :3], 2, 0)
    return int((red - blue > 0.3).sum()), int((blue - red > 0.3).sum())


def test_red_raises_and_blue_lowers(tmp_path: Path) -> None:
    draw_explanation(tmp_path / "one.png", found(), GRAPH)
    draw_explanation(tmp_path / "two.png", found(1.0, 1.0, float("nan")), GRAPH)
    one, two = (colours(tmp_path / f"{name}.png") for name in ("one", "two"))
    assert min(one) > 100 and two[0] > 1.5 * one[0]  # a panel more, in which nothing is blue but the scale


def test_without_matplotlib_molecules_are_drawn_and_graphs_say_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from matplotlib import colormaps

    for value in (-1.0, -0.4, 0.0, 0.7, 1.0):  # the same colours, read off a table of 256
        assert _colour(value, 1.0) == pytest.approx(colormaps[COLOURS](0.5 + 0.3 * value)[:3], abs=0.01)
    for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "enfa.report.explanation")
    again = import_module("enfa.report.explanation")
    with pytest.raises(ValueError, match=r"got none: pip install 'enfa\[report\]'"):
        again.draw_explanation(tmp_path / "e.png", found(0.0, 0.0, 0.0), GRAPH)
    assert not (tmp_path / "e.png").exists()
    pytest.importorskip("rdkit", reason="molecules need the extra enfa[chem]")
    again.draw_explanation(tmp_path / "e.svg", found(0.0, 0.0, 0.0), smiles="CCO")


def test_a_molecule_is_drawn_with_its_bonds(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="molecules need the extra enfa[chem]")
    draw_explanation(tmp_path / "e.png", found(0.0, 0.0, 0.0), smiles="CCO")
    assert min(colours(tmp_path / "e.png")) > 100
    draw_explanation(tmp_path / "e.svg", found(1.0, 1.0, float("nan")), smiles="CCO")
    drawn = (tmp_path / "e.svg").read_text()
    assert drawn.count("bond-0") > 0 and drawn.count("<ellipse") == 5
    draw_explanation(tmp_path / "t.svg", found(1.0, 1.0, float("nan")), smiles="CCO", title="soluble")
    letters = [text.count("class='legend'") for text in (drawn, (tmp_path / "t.svg").read_text())]
    assert letters[1] == letters[0] + 2 * len("soluble")  # below both panels
    with pytest.raises(ValueError, match="Expected a molecule of 3 atoms to draw, got the SMILES 'CCCC'"):
        draw_explanation(tmp_path / "f.svg", found(), smiles="CCCC")
    with pytest.raises(ValueError, match=r"Expected a file ending in .svg or .png for the picture, got .*f.gif"):
        draw_explanation(tmp_path / "f.gif", found(), smiles="CCO")
