"""What docs/scale.md says works as written; its cluster is tested in tests/batch/shards/test_engines.py."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

BLOCKS = re.findall(r"```python\n(.*?)```", (Path(__file__).resolve().parent.parent / "docs/scale.md").read_text(), re.DOTALL)


def test_one_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    torch.set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    exec(BLOCKS[0], names)
    assert "1000 graphs in 4 shards" in capsys.readouterr().out
    assert tuple(names["logits"].shape) == (32, 1)  # type: ignore[attr-defined]
    reading = next(block for block in BLOCKS if "ShardedDataset.open" in block)
    exec(reading, names)
    assert len(names["loader"]) == 8 and names["plan"].num_graphs == 1000 - 7 * 128  # type: ignore[arg-type, attr-defined]
    assert all(p.grad is not None for p in names["model"].parameters())  # type: ignore[attr-defined]
