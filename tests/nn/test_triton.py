"""Which GPUs and which Triton our own kernels are for."""

import sys
from pathlib import Path

import pytest
import torch

from enfa.nn.triton import _usable


@pytest.mark.parametrize(
    ("language", "hip", "usable"),
    [("tuple = 1", None, True), ("", None, False), ("tuple = 1", "6.4", False)],
    ids=["3.3", "3.2", "AMD"],
)
def test_only_a_triton_that_knows_what_the_kernels_use(
    language: str, hip: str | None, usable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton" / "__init__.py").touch()
    (tmp_path / "triton" / "language.py").write_text(language)
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "triton"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(torch.version, "hip", hip)
    try:
        assert _usable.__wrapped__() == usable
    finally:
        for name in ("triton", "triton.language"):
            sys.modules.pop(name, None)
