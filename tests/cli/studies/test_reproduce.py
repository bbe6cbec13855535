import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.cli.studies.reproduce import _about
from enfa.report.measure.store import Store
from enfa.report.pages.write import write_pages
from enfa.report.reproduce import MEASURE
from enfa.report.settings import FULL


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--only", "storrage"], "did you mean 'storage'"),
        (["--device", "tpu"], "Expected --device cpu or cuda, got 'tpu'"),
        (["--datasets", "PROTEIN"], "Expected --datasets from PROTEINS"),
        (["--memory-gb", "-1"], "Expected --memory-gb to be a number > 0, got -1.0"),
        (["--memory-gb", "nan"], "Expected --memory-gb to be a number > 0, got nan"),
        (["--data", "nowhere"], "nowhere is no folder of .npz files"),
    ],
)
def test_mistakes_are_one_line(options: list[str], message: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["reproduce", "--quick", "--out", str(tmp_path / "report"), *options])
    assert result.exit_code == 2
    assert message in " ".join(result.output.split())
    assert not (tmp_path / "report" / "index.html").exists()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(
        app, ["reproduce", "--quick", "--data", str(tmp_path), "--out", str(tmp_path / "report"), "--only", "exactness"]
    )
    assert result.exit_code == 2 and "PROTEINS.npz is missing" in " ".join(result.output.split())


def test_accuracy_alone(tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = CliRunner().invoke(app, ["reproduce", "--data", str(tmp_path), "--out", str(out), "--only", "accuracy"])
    assert result.exit_code == 0, result.output
    assert "76.9 ± 3.9" in (out / "index.html").read_text()


def test_lines_where_there_is_no_terminal(tmp_path: Path) -> None:
    out = tmp_path / "report"
    result = CliRunner().invoke(app, ["reproduce", "--data", str(tmp_path), "--out", str(out), "--only", "accuracy"])
    lines = result.output.splitlines()
    assert lines[0] == "Measuring accuracy."
    assert re.fullmatch(r" *\d+ s  accuracy", lines[1]) and lines[2].startswith("Wrote"), lines


def test_how_long_it_takes_is_said_beforehand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And how much is left after each measurement; what is there already is not counted."""
    out, command = tmp_path / "report", ["reproduce", "--quick", "--data", str(tmp_path), "--only", "storage"]

    def storage(source: object, settings: object, store: Any) -> Iterator[str]:
        for number in range(4):
            store.compute("storage", str(number), lambda: {})
            yield str(number)

    monkeypatch.setitem(MEASURE, "storage", storage)
    monkeypatch.setattr("enfa.report.pages.write.write_pages", lambda _: True)
    lines = CliRunner().invoke(app, [*command, "--out", str(out)]).output.splitlines()
    assert lines[0] == "Measuring storage: 4 measurements, about 11 s to go."
    assert re.fullmatch(r" *\d+ s  storage: 0, about 5 s to go", lines[1]) and re.fullmatch(r" *\d+ s  storage: 3", lines[4])
    path = out / "results" / "storage.json"
    found = json.loads(path.read_text())
    path.write_text(json.dumps({**found, "results": {"0": {}, "2": {}}}))
    lines = CliRunner().invoke(app, [*command, "--out", str(out)]).output.splitlines()
    assert lines[0] == "Measuring storage: 2 measurements, about 5 s to go."
    found = [line.partition("storage: ")[2][:1] for line in lines[1:] if "storage: " in line]
    assert found == ["1", "3"], "a line for what was there already"
    whole = CliRunner().invoke(app, [*(word for word in command if word != "--quick"), "--out", str(tmp_path / "whole")]).output
    assert "Measuring storage: 4 measurements, about 88 s to go." in whole


def test_hours_are_called_hours() -> None:
    assert _about(Counter({"time": 360}), {}, FULL) == ", about 2.3 hours to go"
    assert _about(Counter({"time": 360}), {}, FULL.to(device="cuda")) == ", about 7 minutes to go"
    assert _about(Counter({"time": 4}), {"time": [100.0] * 2}, FULL.to(device="cuda")) == ", about 3 minutes to go"


@pytest.mark.parametrize("text", ["{", "", "[]", '{"settings": {}, "machine": {}}', "\udcff"])
def test_damaged_files_are_named_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def storage(*_: object) -> Iterator[str]:
        raise AssertionError("it measures")

    monkeypatch.setitem(MEASURE, "storage", storage)
    out = tmp_path / "report"
    (out / "results").mkdir(parents=True)
    command = ["reproduce", "--quick", "--data", str(tmp_path), "--out", str(out)]
    damaged = out / "results" / "time.json"
    damaged.write_bytes(text.encode(errors="surrogateescape"))
    for only in ("storage", "accuracy", "time"):  # to be shown beside it, or continued
        said = " ".join(CliRunner().invoke(app, [*command, "--only", only]).output.split())
        assert "results/time.json: expected results of enfa reproduce, got a damaged file" in said, said
        assert said.endswith("remove it, and its section is measured again")
    with pytest.raises(ValueError, match=r"time\.json: expected results of enfa reproduce, got a damaged file"):
        write_pages(out)


def test_a_damaged_file_of_scores_is_named_before_anything_is_measured(tmp_path: Path) -> None:
    scores = tmp_path / "scores"
    scores.mkdir()
    (scores / "list.json").write_text("[1]")  # no scores, and not damaged
    (scores / "one.json").write_text("{")
    result = CliRunner().invoke(
        app, ["reproduce", "--data", str(tmp_path), "--out", str(tmp_path / "report"), "--results", str(scores)]
    )
    said = " ".join(result.output.split())
    assert result.exit_code == 2 and "Measuring" not in said
    assert "scores/one.json: expected a JSON file, got another" in said and "remove it, or name another folder" in said


@pytest.mark.parametrize(
    ("options", "said"), [([], "the same command continues."), (["--fresh"], "the same command without --fresh continues.")]
)
def test_interrupted_it_says_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], said: str
) -> None:
    def storage(source: object, settings: object, store: Any) -> Iterator[str]:
        store.compute("storage", "0", lambda: {})
        yield "0"
        if not isinstance(store, Store):  # only counted
            return
        raise KeyboardInterrupt

    monkeypatch.setitem(MEASURE, "storage", storage)
    out = tmp_path / "report"
    command = ["reproduce", "--quick", "--data", str(tmp_path), "--only", "storage", "--out", str(out)]
    result = CliRunner().invoke(app, [*command, *options])
    assert result.exit_code == 130
    assert result.stderr == f"Interrupted: what was measured is kept in {out}, and {said}\n"


def test_a_folder_of_scores_that_is_not_there_is_said_beforehand(tmp_path: Path) -> None:
    command = ["reproduce", "--data", str(tmp_path), "--out", str(tmp_path / "report"), "--only", "accuracy", "--results"]
    lines = CliRunner().invoke(app, [*command, str(tmp_path / "nowhere")]).output.splitlines()
    assert lines[:2] == [
        f"There is no folder {tmp_path / 'nowhere'}: accuracy will have the paper's numbers alone.", "Measuring accuracy."
    ]  # fmt: skip
    assert CliRunner().invoke(app, [*command, str(tmp_path)]).output.startswith("Measuring accuracy.")
