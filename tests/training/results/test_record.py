"""What a record says of how a run was done."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from enfa.training import fit, read_config
from enfa.training.results.collect import Results
from enfa.training.results.done import record_of
from enfa.training.run import BEST, evaluate, folder_of

SMALL = ["epochs=1", "num_layers=1", "hidden_channels=4", "accelerator=cpu", "threads=1", "num_workers=0"]
PARTS = {"split_train": np.arange(20), "split_valid": np.arange(20, 30), "split_test": np.arange(30, 40)}


def test_a_table_was_validated_on_its_own_part(tmp_path: Path) -> None:
    """Its split has one: 'test', the setting's default, is not what was done."""
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    path, out = tmp_path / "alkanes.csv", f"out={tmp_path / 'runs'}"
    path.write_text("smiles,long\n" + "".join(f"{'C' * n},{int(n > 20)}\n" for n in range(1, 41)))
    config = read_config(path, [*SMALL, out, "metric=accuracy"])
    record = fit(config, progress=False)
    assert record is not None and record.validated_on == "valid" and record.test is not None
    results = Results.open(tmp_path / "results", config)
    results.add(record)
    for file in (folder_of(config) / "result.json", results.path):
        there = json.loads(file.read_text())
        run = there["runs"][0] if "runs" in there else there
        assert there["config"]["validation"] is None and run["validated_on"] == "valid"
    assert read_config(folder_of(config) / "config.yaml") == config
    # files of versions that wrote 'test' there are those of the same run
    for file in (folder_of(config) / "result.json", results.path):
        file.write_text(file.read_text().replace('"validation": null', '"validation": "test"'))
        assert '"validation": "test"' in file.read_text()
    assert record_of(config) is not None and len(Results.open(tmp_path / "results", config).records) == 1
    evaluate(config, folder_of(config) / BEST, progress=False)


@pytest.mark.parametrize(
    ("parts", "setting", "said"), [({}, "test", "test fold"), ({}, "next", "next fold"), (PARTS, "next", "valid")]
)
def test_a_record_says_what_a_run_was_validated_on(
    config_file: Callable[..., Path], make_npz: Callable[..., Path], parts: dict[str, np.ndarray], setting: str, said: str
) -> None:
    path = make_npz(np.arange(40) % 2, **parts)
    config = read_config(config_file(dataset=str(path), epochs=1, validation=setting))
    record = fit(config, progress=False)
    assert record is not None and record.validated_on == said
    assert (record.test is None) == (said == "test fold")
    with pytest.raises(ValueError, match=r"Expected validation to be test or next for .*\.npz, got null"):
        read_config(config_file(dataset=str(path)), ["validation=null"])
