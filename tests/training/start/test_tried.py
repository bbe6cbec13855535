"""Models of the user's own that depend on their plan are refused before they are trained."""

import re
from collections.abc import Callable
from pathlib import Path

import code_of_mine
import pytest
import torch
from torch_geometric.data import Data

from enfa.testing import random_graphs
from enfa.training import fit, read_config
from enfa.training.models import build_model
from enfa.training.start.tried import NODES, check_same_rows, few

Write = Callable[..., Path]
MODEL = {"num_layers": 4, "hidden_channels": 32, "jk": None, "epochs": 1}  # of which it has no settings
MIXES = {**MODEL, "model": "Mixing"}


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)


@pytest.mark.parametrize("plan", ["distinct", "ego"])
@pytest.mark.parametrize("scale", [1.0, 0.0])  # also what it only comes to depend on
def test_what_depends_on_the_plan_is_refused(config_file: Write, plan: str, scale: float) -> None:
    of = f"Expected the same output on plan={plan} as on all rows from model=Mixing, got one that is off by .*plan=full trains"
    with pytest.raises(ValueError, match=of):
        fit(read_config(config_file(**MIXES, plan=plan, model_params={"scale": scale})), progress=False)


def test_also_of_models_that_run_in_float32_only(config_file: Write) -> None:
    with pytest.raises(ValueError, match="the same output on plan=distinct as on all rows from model=Single"):
        fit(read_config(config_file(**MIXES | {"model": "Single", "precision": "32"})), progress=False)


SAME = {**MIXES, "model_params": {"mixes": False}}
ROUNDS = {**SAME, "model": "Single", "precision": "32"}
DRAWS, HOLDS = ({**MODEL, "model": model} for model in ("Unsteady", "Holding"))
OTHERS = {"full": {**MIXES, "plan": "full"}, "same": SAME, "float32": ROUNDS, "draws": DRAWS, "masks": HOLDS}


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    lines: list[str] = []
    monkeypatch.setattr("enfa.training.start.tried.tell", lines.append)
    return lines


@pytest.mark.parametrize("own", OTHERS.values(), ids=OTHERS)
def test_others_are_trained(config_file: Write, told: list[str], own: dict) -> None:
    assert fit(read_config(config_file(**own)), progress=False) is not None
    assert not told


@pytest.mark.parametrize(
    "own, why",
    [
        ({"model": "Locked"}, "TypeError: cannot pickle"),
        ({"model": "Unseeded"}, "its output is another whenever it is run"),
        ({"model": "Plain", "policy": "Far", "policy_params": {"nodes": 40}}, "ValueError: Far.nodes=40.: graph 0"),
    ],
    ids=["copies", "generator", "policy"],
)
def test_what_cannot_be_tried_is_told_of(config_file: Write, told: list[str], own: dict, why: str) -> None:
    large = [Data(x=torch.zeros(40, 1, dtype=torch.long), edge_index=torch.tensor([[0], [1]]))] * 3
    config = read_config(config_file(**MODEL | own))
    check_same_rows(config, build_model(config, {"in_channels": [1], "out_channels": 2, "mark_channels": 1}), large)
    assert len(told) == 1 and re.match(
        f"{own['model']} was not compared with the full plan before it is trained: {why}", told[0]
    )


def test_models_of_the_package_are_not_tried(config_file: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.training.start.tried.differences", lambda *args, **more: pytest.fail("tried"))
    check_same_rows(read_config(config_file()), torch.nn.Linear(1, 1), random_graphs(2))


def test_gradients_that_depend_on_the_plan_are_told_of(config_file: Write, told: list[str]) -> None:
    assert fit(read_config(config_file(**MIXES | {"model": "Inward"})), progress=False) is not None
    assert len(told) == 1 and re.match("Inward: the outputs .* are those on all rows, but the gradient of .* is off", told[0])


def test_of_large_graphs_a_piece_is_tried() -> None:
    ring = torch.stack([torch.arange(100), (torch.arange(100) + 1) % 100])
    large = Data(x=torch.arange(100)[:, None], edge_index=ring[:, torch.randperm(100)])
    bare = Data(x=torch.zeros(100, 1), edge_index=torch.zeros(2, 0, dtype=torch.long))
    apart = Data(x=torch.zeros(100, 1), edge_index=torch.tensor([[7], [50]]))
    small = random_graphs(9, nodes=20)
    assert [graph.num_nodes for graph in few([large, *small])] == sorted(graph.num_nodes for graph in small)[-3:]
    piece, of_bare, of_apart = few([large, bare, apart])
    assert piece.num_nodes == of_bare.num_nodes == NODES and piece.num_edges == NODES - 1 and of_apart.num_edges == 1
    loop = Data(x=torch.zeros(100, 1), edge_index=torch.tensor([[3, 3], [3, 4]]))  # which has one node at both of its ends
    assert few([loop])[0].num_nodes == 2
    assert len(few([large])) == 1 and len(few([small[0], large, large, large])) == 3
