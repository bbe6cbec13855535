from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

import enfa
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import Manifest
from enfa.cli.app import app
from enfa.datasets import from_npz
from enfa.training.settings.files import read_config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    sizes = rng.integers(2, 7, 25)
    edges = [[[i, i + 1] for i in range(size - 1)] for size in sizes]
    path, nodes = tmp_path / "paths.npz", sizes.sum()
    np.savez(path, num_nodes=sizes, num_edges=sizes - 1, edges=np.concatenate(edges), x=rng.integers(0, 5, nodes),
             edge_attr=rng.integers(0, 3, nodes - 25), y=rng.random(25))  # fmt: skip
    return path


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["compile", *map(str, words)])
    return result.exit_code, " ".join(result.output.split())


def test_a_file_is_compiled(file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = file, "--out", out, "--layers", 3, "--conv", "gine", "--shards", 4, "--workers", 1, "--no-progress"
    code, text = run(*words)
    assert code == 0 and text.startswith("25 graphs in 4 shards, ") and text.endswith(str(out)), text
    manifest, graphs = Manifest.read(Folder(out)), from_npz(file).graphs
    model = enfa.DSGNN([5], 8, 1, 3, "gine", edge_channels=[3])
    assert manifest.program == enfa.compile(graphs, enfa.NodeMarking(), model, progress=False).program
    compiled = enfa.load_compiled(out / "shard-00001.enfa")
    assert compiled.y is not None and compiled.y.tolist() == [graph.y.tolist()[0] for graph in graphs[6:12]]
    assert run(*words)[0] == 0
    whole = run(file, "--out", tmp_path / "whole", "--layers", 1, "--workers", 1, "--no-progress")[1]
    assert whole.split("gine does. ")[1].startswith("25 graphs in 1 shard, ")
    assert repr(enfa.ShardedDataset.open(tmp_path / "whole")).startswith("ShardedDataset(distinct, 25 graphs in 1 shard, ")
    code, text = run(file, "--out", out, "--layers", 2, "--conv", "gine", "--shards", 4, "--workers", 1)
    said = "holds shards of something else: delete the folder or choose another (another model: 3 rounds of messages, not 2)"
    assert code == 2 and said in text
    code, text = run(file, "--out", out, "--layers", 3, "--conv", "gin", "--shards", 4, "--workers", 1)
    assert code == 2 and "(another model: a conv that reads edges, and one that does not)" in text


def test_shards_of_a_config_are_those_of_its_training(file: Path, tmp_path: Path) -> None:
    pytest.importorskip("lightning", reason="training needs the extra enfa[train]")
    from enfa.training.start.prepare import prepare

    config, out = tmp_path / "c.yaml", tmp_path / "out #1"  # a name, whatever YAML makes of it
    settings = {"dataset": str(file), "conv": "gine", "num_layers": 3, "jk": "concat", "readout": "mean", "accelerator": "cpu"}
    config.write_text(yaml.safe_dump({**settings, "threads": 1}))
    words = config, "num_layers=2", "--out", out, "--shard-size", 7, "--workers", 1, "--no-progress"
    code, text = run(*words)
    assert code == 0 and text.startswith("25 graphs in 4 shards, ") and text.endswith(str(out)), text
    before = {path.name: path.stat().st_mtime_ns for path in out.glob("shard-*")}
    prepare(read_config(config, ["num_layers=2"], shards=str(out)))
    assert {path.name: path.stat().st_mtime_ns for path in out.glob("shard-*")} == before
    with pytest.raises(ValueError, match="another model: conv, readout, bag or jk differ"):
        prepare(read_config(config, ["num_layers=2", "jk=last"], shards=str(out)))
    with pytest.raises(ValueError, match="another model: one with dropout, and one without"):
        prepare(read_config(config, ["num_layers=2", "dropout=0.5"], shards=str(out)))
    for more, said in ((["--layers", 3], "Expected num_layers=VALUE beside a config, got --layers"),
                       (["--root", tmp_path], "Expected root=VALUE")):  # fmt: skip
        code, text = run(*words, *more)
        assert code == 2 and said in text, text
    code, text = run(file, "num_layers=2", "--out", tmp_path / "other")
    assert code == 2 and "Expected settings beside a config (.yaml) only" in text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--model", "dds"], "did you mean 'dds'|did you mean 'ds'"), (["--policy", "nothing"], "policy"),
        (["--shards", 4, "--shard-size", 3], "either shards or shard_size"), (["--engine", "dusk"], "did you mean 'dask'"),
        (["--labels", "a"], "columns have names"), (["--conv", "gone"], "conv"),
        (["--target", "a"], "columns have names, with --target"), (["--target", "a", "--labels", "b"], "got both: a and b"),
    ],
)  # fmt: skip
def test_mistakes(words: list, said: str, file: Path, tmp_path: Path) -> None:
    import re

    code, text = run(file, "--out", tmp_path / "out", *words)
    assert code == 2 and re.search(said, text), text
    assert not (tmp_path / "out").exists()


def test_columns_to_learn_are_named_as_for_training(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    table = tmp_path / "m.csv"
    table.write_text('smiles,logp,"a, b"\nCCO,1.5,2\nCCC,0.5,\n')
    for out, words in (("new", ["--target", "logp", "--target", "a, b"]), ("old", ["--labels", "logp"])):
        code, text = run(table, *words, "--out", tmp_path / out, "--layers", 1, "--workers", 1, "--no-progress")
        assert code == 0, text
    y = enfa.ShardedDataset.open(tmp_path / "new")[[0, 1]].y
    assert y[0].tolist() == [1.5, 2] and y[1, 0] == 0.5 and y[1, 1].isnan()
    assert enfa.ShardedDataset.open(tmp_path / "old")[[0, 1]].y.tolist() == [[1.5], [0.5]]
    (tmp_path / "c.yaml").write_text(f"dataset: {table}")
    code, text = run(tmp_path / "c.yaml", "--target", "logp", "--out", tmp_path / "out")
    assert code == 2 and "Expected targets=VALUE beside a config, got --target" in text
    rows = "".join(f"{'C' * k},{k}.5\n" for k in range(1, 30))
    table.write_text(f"smiles,logp\n{rows}no molecule,1\nCCO,\n")
    code, text = run(tmp_path / "c.yaml", "targets=[logp]", "skip_bad=true", "--out", tmp_path / "config", "--no-progress")
    assert code == 0 and "1 row could not be read" in text and "1 row without a label left out" in text, text
    assert "The former name of" in run("--help")[1]  # in a column as narrow as that


def test_molecules_without_rdkit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("rdkit", "rdkit.Chem"):
        monkeypatch.setitem(sys.modules, name, None)
    table = tmp_path / "m.csv"
    table.write_text("smiles\nCO\n")
    assert run(table, "--out", tmp_path / "out") == (2, "Error: Reading SMILES needs rdkit: pip install 'enfa[chem]'")
