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
