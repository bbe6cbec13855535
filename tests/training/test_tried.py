"""Models of the user's own that depend on their plan are refused before they are trained."""

from collections.abc import Callable
from pathlib import Path

import code_of_mine
import pytest
import torch
from torch_geometric.data import Data

from enfa.testing import random_graphs
from enfa.training import fit, read_config
from enfa.training.tried import NODES, _few, check_same_rows

Write = Callable[..., Path]
MODEL = {"num_layers": 4, "hidden_channels": 32, "jk": None, "epochs": 1}  # of which it has no settings
MIXES = {**MODEL, "model": "Mixing"}


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)


@pytest.mark.parametrize("plan", ["distinct", "ego"])
def test_what_depends_on_the_plan_is_refused(config_file: Write, plan: str) -> None:
    of = f"Expected the same output on plan={plan} as on all rows from model=Mixing, got one that is off by .*plan=full trains"
    with pytest.raises(ValueError, match=of):
        fit(read_config(config_file(**MIXES, plan=plan)), progress=False)


SAME, DRAWS = {**MIXES, "model_params": {"mixes": False}}, {**MODEL, "model": "Unsteady"}


@pytest.mark.parametrize("own", [{**MIXES, "plan": "full"}, SAME, DRAWS], ids=["full", "same", "draws"])
def test_others_are_trained(config_file: Write, own: dict) -> None:
    assert fit(read_config(config_file(**own)), progress=False) is not None


def test_models_of_the_package_are_not_tried(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.training.tried.differences", lambda *args, **more: pytest.fail("tried"))
    check_same_rows(read_config(config_file()), torch.nn.Linear(1, 1), random_graphs(2))


def test_of_large_graphs_a_piece_is_tried() -> None:
    ring = torch.stack([torch.arange(100), (torch.arange(100) + 1) % 100])
    large = Data(x=torch.arange(100)[:, None], edge_index=ring[:, torch.randperm(100)])
    bare = Data(x=torch.zeros(100, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    apart = Data(x=torch.zeros(100, 1), edge_index=torch.tensor([[7], [50]]))
    small = random_graphs(9, nodes=20)
    assert [graph.num_nodes for graph in _few([large, *small])] == sorted(graph.num_nodes for graph in small)[-3:]
    piece, of_bare, of_apart = _few([large, bare, apart])
    assert piece.num_nodes == of_bare.num_nodes == NODES and piece.num_edges == NODES - 1 and of_apart.num_edges == 1
    assert len(_few([large])) == 1 and len(_few([small[0], large, large, large])) == 3
