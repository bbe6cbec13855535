import csv
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.datasets import BadRows, from_smiles, to_npz
from enfa.training import fit, read_config
from enfa.training.problem import Problem
from enfa.training.settings.folder import BEST, folder_of
from enfa.training.trained.ensemble import fit_ensemble
from enfa.training.trained.predict import Outputs, predict
from enfa.training.trained.predict_table import predict_table

pytest.importorskip("rdkit", reason="rdkit is not installed")
CHAINS = ["C" * (1 + k) + end for k in range(10) for end in ("O", "N", "Cl")]
SMALL = {"num_layers": 1, "hidden_channels": 4, "epochs": 1, "conv": "gine"}


def trained(tmp_path: Path, config_file: Callable[..., Path], header: str, label: Callable[[int], object]) -> Path:
    path = tmp_path / "m.csv"
    path.write_text("\n".join([header, *(f"{text},{label(k)}" for k, text in enumerate(CHAINS))]))
    config = read_config(config_file(dataset=str(path), **SMALL))
    fit(config, progress=False)
    return folder_of(config) / BEST


def test_columns_are_kept_and_bad_rows_are_blank(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    best = trained(tmp_path, config_file, "smiles,active", lambda k: k % 2)
    new = tmp_path / "new.csv"
    new.write_text("id;smiles;active\n7;CCO;1\n8;C(C;0\n9;[Og]C;\n10;CC\n")
    with pytest.raises(BadRows, match=r"2 of 4 rows cannot be read, line 3: 'C\(C': no SMILES string \(and 1 more\)"):
        predict_table(best, new)
    found = predict_table(best, new, skip_bad=True)
    assert [row.line for row in found.bad] == [3, 5] and found.count == 2
    assert list(found.rows[0]) == ["id", "smiles", "active", "probability_active"]
    assert [row["probability_active"] == "" for row in found.rows] == [False, True, False, True]
    assert [row["id"] for row in found.rows] == ["7", "8", "9", "10"]
    assert [str(row) for row in found.unseen] == ["line 4: '[Og]C': no training molecule has Og"]
    (tmp_path / "two.smi").write_text("CCO\n[Og]C\n")
    assert [row["p0"] for row in predict(best, tmp_path / "two.smi")] == [found.rows[k]["probability_active"] for k in (0, 2)]

    out, args = tmp_path / "p.csv", ["predict", str(best), str(new), "--out", str(tmp_path / "p.csv")]
    refused = CliRunner().invoke(app, args)
    lines = refused.stderr.splitlines()
    assert refused.exit_code == 2 and not out.exists()
    assert lines[0].startswith("line 3: 'C(C'") and lines[1].startswith("line 5: '10;CC': Expected 3 columns, got 2")
    result = CliRunner().invoke(app, [*args, "--skip-bad"])
    assert result.exit_code == 0 and result.stdout == f"2 predictions in {out}; 2 rows could not be read and are blank\n"
    assert "1 row with elements that the model has not learned anything of" in result.stderr
    assert "predicting" not in result.stderr
    terminal = CliRunner(env={"FORCE_COLOR": "1"}).invoke(app, [*args, "--skip-bad", "--force"])
    assert "predicting" in terminal.stderr and terminal.stderr.index("predicting") < terminal.stderr.index("line 3")
    with out.open() as file:
        rows = list(csv.DictReader(file, delimiter=";"))
    assert [row["probability_active"] for row in rows] == [str(row["probability_active"]) for row in found.rows]
    (tmp_path / "one.csv").write_text("smiles\nCCO\nC(C\n")
    args = ["predict", str(best), str(tmp_path / "one.csv"), "--out", str(tmp_path / "q.csv"), "--skip-bad"]
    result = CliRunner().invoke(app, args)
    assert result.stdout == f"1 prediction in {tmp_path / 'q.csv'}; 1 row could not be read and is blank\n"
    new.write_text("smiles,probability_active\nC,1\n")
    with pytest.raises(ValueError, match="Expected no column 'probability_active', which is for predictions"):
        predict_table(best, new)


def test_columns_of_an_ensemble_are_not_mixed_with_those_of_the_file(
    tmp_path: Path, config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text("\n".join(["smiles,active", *(f"{text},{k % 2}" for k, text in enumerate(CHAINS))]))
    folder = fit_ensemble(read_config(config_file(dataset="m.csv", **SMALL)), 2, progress=False)
    for column in ("probability_active", "probability_active_deviation"):
        Path("new.csv").write_text(f"smiles,{column}\nCCO,mine\n")
        result = CliRunner().invoke(app, ["predict", str(folder), "new.csv"])
        assert result.exit_code == 2 and not Path("predictions.csv").exists()
        assert f"new.csv: Expected no column '{column}', which is for predictions" in " ".join(result.stderr.split())
    Path("new.csv").write_text("smiles,active_deviation\nCCO,mine\n")
    (row,) = predict_table(folder, Path("new.csv")).rows
    assert list(row) == ["smiles", "active_deviation", "probability_active", "probability_active_deviation"]
    assert row["active_deviation"] == "mine" and row["probability_active_deviation"] > 0


def test_a_target_named_as_the_deviation_of_another_is_refused_of_an_ensemble() -> None:
    problem = Problem("regression", "mae", 2, [1], None, targets=["heat", "heat_deviation"])
    values = torch.tensor([[1.0, 2.0]])
    with pytest.raises(ValueError, match="no target or class whose name is another's with _deviation behind it, got"):
        list(Outputs(values, torch.zeros(1, 2), problem).named(prefix=True))
    assert list(Outputs(values, None, problem).named(prefix=True)) == [{"predicted_heat": 1.0, "predicted_heat_deviation": 2.0}]


def test_classes_by_name_and_many_bad_rows(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    best = trained(tmp_path, config_file, "smiles,colour", lambda k: ("red", "blue", "green")[k % 3])
    new = tmp_path / "new.csv"
    new.write_text("structure,n\nCCO,1\n" + "C(C,1\n" * 25)
    out = tmp_path / "p.csv"
    args = ["predict", str(best), str(new), "--smiles", "structure", "--out", str(out)]
    for more, code in ((), 2), (("--skip-bad",), 0):  # the list of the first does not stand in the way of the second
        result = CliRunner().invoke(app, [*args, *more])
        assert result.exit_code == code, result.output
        lines = result.stderr.splitlines()
        assert [line.split(":")[0] for line in lines[:20]] == [f"line {k}" for k in range(3, 23)]
        assert lines[20] == f"… and 5 more: all are in {tmp_path / 'p.bad.csv'}"
        with (tmp_path / "p.bad.csv").open() as file:
            assert [int(row["line"]) for row in csv.DictReader(file)] == list(range(3, 28))
    with out.open() as file:
        first = next(csv.DictReader(file))
    names = ["probability_blue", "probability_green", "probability_red"]
    assert list(first) == ["structure", "n", "predicted_colour", *names]
    assert first["predicted_colour"] == max(names, key=lambda name: float(first[name])).removeprefix("probability_")
    (tmp_path / "q.bad.csv").write_text("mine")
    again = CliRunner().invoke(app, [*args[:-1], str(tmp_path / "q.csv"), "--skip-bad"])
    assert again.exit_code == 2 and "q.bad.csv exists" in again.stderr and (tmp_path / "q.bad.csv").read_text() == "mine"


def test_numbers_are_in_the_units_of_the_file(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    best = trained(tmp_path, config_file, "smiles,boils", lambda k: 1000 + k / 7)
    found = predict_table(best, tmp_path / "m.csv")
    assert list(found.rows[0]) == ["smiles", "boils", "predicted_boils"]
    assert all(900 < row["predicted_boils"] < 1100 for row in found.rows)


def test_molecules_that_a_model_has_no_place_for_are_named(tmp_path: Path, config_file: Callable[..., Path]) -> None:
    """Where its categories were read off its training data."""
    graphs = from_smiles(CHAINS, torch.arange(30) % 2)
    to_npz(graphs, tmp_path / "m.npz")
    config = read_config(config_file(dataset=str(tmp_path / "m.npz"), **SMALL))
    fit(config, progress=False)
    new = tmp_path / "new.csv"
    new.write_text("smiles\nCCO\nC[Og]\n")
    with pytest.raises(BadRows, match=r"line 3: 'C\[Og\]': Expected atom features in column 0 below 17"):
        predict_table(folder_of(config) / BEST, new)
    assert predict_table(folder_of(config) / BEST, new, skip_bad=True).rows[1]["p0"] == ""
