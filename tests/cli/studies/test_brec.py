from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from enfa.cli.app import app
from enfa.cli.studies import brec


def _run(sample: Path, *options: str) -> Result:
    settings = ["--layers", "2", "--width", "8", "--epochs", "2", "--model", "ds"]
    return CliRunner().invoke(app, ["brec", str(sample), *settings, *options])


def test_table_and_resumed(sample: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = sample.parent / "out.json"
    result = _run(sample, "--out", str(out), "--pairs", "0")
    assert result.exit_code == 0, result.output
    assert result.output.split("all")[1].split()[1:3] == ["1", "1"] and list(json.loads(out.read_text())["pairs"]) == ["0"]
    trained, real = [], brec.train_pair
    monkeypatch.setattr(brec, "train_pair", lambda *a, **k: trained.append(k["number"]) or real(*a, **k))
    found = json.loads(_run(sample, "--out", str(out), "--json").stdout)["pairs"]
    assert trained == [1] and [one["bound"] for one in found.values()] == [True, False]
    assert not found["1"]["apart"] and found["1"]["reliable"]
    other = _run(sample, "--out", str(out), "--seed", "7")
    assert other.exit_code == 2 and "holds results of seed 100, not 7" in other.output


def test_a_pair_outside_of_the_bound_is_an_error(sample: Path) -> None:
    out = sample.parent / "out.json"
    _run(sample, "--out", str(out))
    found = json.loads(out.read_text())
    found["pairs"]["1"]["apart"] = True
    out.write_text(json.dumps(found))
    result = _run(sample, "--out", str(out))
    assert result.exit_code == 1 and "though no weights can: pairs 1" in result.output


def test_default_policy_is_the_models(sample: Path) -> None:
    found = json.loads(_run(sample, "--pairs", "0", "--model", "gnn_ak", "--json").stdout)
    assert found["settings"]["policy"] == "EgoNets(hops=3, mark='distances', isolate=False)"


def test_mistakes(sample: Path) -> None:
    for options, sentence in (
        (["--pairs", "1:9"], "Expected some of the pairs 0 to 1, got '1:9'"), (["--pairs", "a"], "such as 0:60"),
        (["--device", "tpu"], "Expected --device cpu, or cuda"), (["--out", str(sample)], "expected results of enfa brec"),
        (["--model", "i2gnn", "--policy", "ego_nets:hops=2"], "got ego_nets: use neighbor_marking"),
        (["--seed", "-1"], "Invalid value for '--seed'"),
    ):  # fmt: skip
        result = _run(sample, *options)
        assert result.exit_code == 2 and sentence in " ".join(result.output.split()), result.output
