"""docs/own_data.md: its commands and its code, run as they stand, on fewer rows and for one epoch."""

import csv
import importlib
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from pages import PAGES, commands, sentences
from typer.testing import CliRunner, Result

from enfa.cli.app import app
from enfa.training import read_config

pytest.importorskip("rdkit", reason="rdkit is not installed")
pytest.importorskip("lightning", reason="training needs the extra enfa[train]")

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "own_data.md").read_text()
SMALL = ["epochs=1", "num_layers=1", "hidden_channels=4", "accelerator=cpu", "threads=1", "--no-progress"]


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def run(line: str) -> Result:
    command, *words = shlex.split(line)
    assert command == "enfa"
    more = {"train": SMALL, "test": SMALL, "sweep": [*SMALL, "--jobs", "1"]}
    return CliRunner().invoke(app, [*words, *more.get(words[0], [])])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """As a clone, with a tenth of the rows."""
    monkeypatch.chdir(tmp_path)
    script = ROOT / "examples" / "molecules.py"
    subprocess.run([sys.executable, str(script), "100"], check=True, capture_output=True)
    Path("examples").symlink_to(ROOT / "examples")
    return tmp_path


def test_five_commands(folder: Path) -> None:
    install, make, trained, predicted, explained = blocks("bash")[0].splitlines()
    extras = set(re.findall(r"[\w]+", install.partition("[")[2]))
    assert install.startswith("pip install '.[") and all(
        f"\n{name} = [" in (ROOT / "pyproject.toml").read_text() for name in extras
    )
    assert make == "python examples/molecules.py" and (ROOT / make.split()[1]).is_file()

    result = run(trained.replace(" --skip-bad --ensemble 3", ""))
    lines = result.stderr.splitlines()
    assert result.exit_code == 2 and "molecules.csv: 20 of 100 rows cannot be read" in lines[-1]
    told = [line for line in lines if line.startswith("line ")]
    assert len(told) == 20 and told[:2] == [
        "line 5: 'CC(C)(C)(C)(C)C': Explicit valence for atom # 1 C, 6, is greater than permitted",
        "line 10: 'C%': no SMILES string",
    ]
    result = run(trained)
    assert result.exit_code == 0, result.output
    assert [line.split(":")[0] for line in result.stdout.splitlines() if line.startswith("seed")] == [
        "seed 0",
        "seed 1",
        "seed 2",
    ]
    result = run(predicted)
    assert result.exit_code == 0, result.output
    with (folder / "new.csv").open() as new, (folder / "predictions.csv").open() as file:
        before, rows = list(csv.DictReader(new)), list(csv.DictReader(file))
    assert [{name: row[name] for name in before[0]} for row in rows] == before, "the columns as they were"
    assert [name for name in rows[0] if name not in before[0]] == ["probability_soluble", "probability_soluble_deviation"]
    assert [row["probability_soluble"] == "" for row in rows] == [k % 5 == 3 for k in range(len(rows))]
    assert all(float(row["probability_soluble_deviation"] or 1) > 0 for row in rows)
    result = run(explained)
    assert result.exit_code == 0, result.output
    assert list(folder.glob("*.svg")) and list(folder.glob("*.json")), result.output
    # both is refused the second time, rather than written over
    assert run(trained).exit_code == run(predicted).exit_code == 2


def test_the_settings_are_those_of_the_command(folder: Path) -> None:
    (text,) = blocks("yaml")
    Path("molecules.yaml").write_text(text)
    there = read_config("molecules.yaml")
    options = {"smiles": "smiles", "targets": ["soluble"], "split": "scaffold", "skip_bad": True}
    assert there == read_config("molecules.csv", **options) and yaml.safe_load(text)["targets"] == ["soluble"]
    assert (there.hidden_channels, there.conv, there.epochs, there.early_stopping) == (64, "gine", 100, 20)
    assert all(f"={value}`" in PAGE for value in (64, 100, 20)) and "(`gine`)" in PAGE
    assert read_config("molecules.csv", ["targets=soluble"]).targets == ["soluble"], "one needs no list"
    with pytest.raises(ValueError, match="Expected targets to be a list of texts or null, got 3"):
        read_config("molecules.csv", ["targets=3"])
    with pytest.raises(ValueError, match=r"Expected no split=scaffold but for a \.csv file of molecules, got dataset=PROTEINS"):
        read_config("molecules.yaml", ["dataset=PROTEINS", "smiles=null", "targets=null"])
    assert read_config("molecules.csv", ["seed=1"], seed=4).seed == 4, "options come last"
    assert read_config("molecules.csv", ["model=subgraphormer"]).conv == "gat", "other models keep theirs"


def test_a_model_of_ones_own(folder: Path) -> None:
    trained, predicted = blocks("bash")[1].splitlines()
    for line in (trained, predicted):
        result = run(line)
        assert result.exit_code == 0, (line, result.output)
    assert json.loads(Path("runs/mine/fold-0-seed-0/result.json").read_text())["config"]["model"] == "MoleculeNet"
    assert Path("predictions.csv").is_file()


def test_graphs_of_other_kinds(folder: Path) -> None:
    lines = re.findall(r"^    (\{.*\})$", PAGE, re.MULTILINE)
    Path("graphs.jsonl").write_text("\n".join(lines * 5))
    for line in blocks("bash")[2].splitlines():
        result = run(line)
        assert result.exit_code == 0, (line, result.output)
    assert Path("runs/graphs/fold-0-seed-0/best.ckpt").is_file()
    (code,) = blocks("python")
    exec(code, {})


def test_commands_in_sentences(folder: Path) -> None:
    """As they stand, behind what the page has said by then."""
    page = next(page for page in PAGES if page.stem == "own_data")
    assert len(commands(page)) == 5 + 2 + 3, "of three blocks, each of which has its test"
    Path("soluble.yaml").write_text(blocks("yaml")[0])
    Path("graphs.jsonl").write_text("\n".join(re.findall(r"^    (\{.*\})$", PAGE, re.MULTILINE) * 5))
    assert run("enfa convert graphs.jsonl graphs.npz").exit_code == 0
    assert run("enfa train molecules.csv --target soluble --split scaffold --skip-bad").exit_code == 0
    told = [str(command) for command in sentences(page) if command.words[0] == "enfa"]
    assert len(told) == 7
    for line in told:
        result = run(line)
        assert result.exit_code == 0, (line, result.output)


def test_numbers_and_tasks_with_blanks(folder: Path) -> None:
    """What the page says of other labels, and that scores are told in the units of the data."""
    result = run("enfa train molecules.csv --target logp --skip-bad name=numbers")
    assert result.exit_code == 0, result.output
    assert "standard deviations, which is" in " ".join(result.stdout.split()) and "in units of logp" in " ".join(
        result.stdout.split()
    )
    run("enfa predict runs/numbers/fold-0-seed-0 new.csv --skip-bad --out numbers.csv")
    with open("numbers.csv") as file:
        assert "predicted_logp" in next(csv.reader(file))
    text = Path("molecules.csv").read_text().splitlines()
    rows = [text[0] + ",fat"] + [f"{line},{k % 2 if k % 3 else ''}" for k, line in enumerate(text[1:])]
    Path("two.csv").write_text("\n".join(rows))
    result = run("enfa train two.csv --target soluble --target fat --skip-bad --seed 4")
    assert result.exit_code == 0 and Path("runs/two/fold-0-seed-4").is_dir(), result.output
    result = run("enfa predict runs/two/fold-0-seed-4/best.ckpt new.csv --skip-bad --out two_predicted.csv")
    with open("two_predicted.csv") as file:
        assert next(csv.reader(file))[-2:] == ["probability_soluble", "probability_fat"]


def test_names_exist() -> None:
    for name in re.findall(r"`(enfa\.datasets\.\w+)`", PAGE):
        module, _, last = name.rpartition(".")
        assert hasattr(importlib.import_module(module), last), name
