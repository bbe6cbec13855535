import warnings

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.cli.studies import demo as module
from enfa.testing import Difference


@pytest.fixture(scope="module")
def shown() -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # which would stand among what it shows
        result = CliRunner().invoke(app, ["demo", "--quick"], env={"COLUMNS": "100"})
    assert result.exit_code == 0, result.output
    return result.output


def test_shows_three_plans_side_by_side(shown: str) -> None:
    rows = {line.split()[1]: line for line in shown.splitlines() if line.startswith("│")}
    assert list(rows) == ["full", "ego", "distinct"]
    assert "4 × 16,810" in rows["full"]
    assert "3  8  21  51" in rows["distinct"]
    assert "The same answer" in shown


def test_learns_what_a_plain_gnn_cannot(shown: str) -> None:
    assert "subgraph GNN 100%, plain GNN 10%, chance 10%" in shown


def test_what_to_do_next_runs(shown: str) -> None:
    assert module.NEXT.splitlines()[-1] in shown
    exec(module.NEXT, {})


def test_plans_that_differ_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    whats = "output", "gradient of a weight", "buffer of a norm"
    wrong = [Difference(kind, "train", what, 1e-3) for kind in ("ego", "distinct") for what in whats]
    monkeypatch.setattr(module, "differences", lambda *_: wrong)
    monkeypatch.setattr(module, "_train", lambda *_: {"subgraph GNN": 1.0, "plain GNN": 0.1})
    result = CliRunner().invoke(app, ["demo", "--quick"])
    assert result.exit_code == 1
    assert "Answers differ by more than 1e-10" in result.output
