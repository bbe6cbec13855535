"""Which GPUs and which Triton our own kernels are for."""

import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
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


def _missing() -> str | None:
    """Why the kernels cannot be interpreted here."""
    if torch.cuda.is_available():
        return "on a GPU the tests of tests/nn/triton run by themselves"
    try:
        found = version("triton")
    except PackageNotFoundError:
        return "Triton is not installed (pip install 'enfa[dev]', on Linux)"
    # before 3.7 it asks numpy for what 2.4 does not do any more; 3.9 stores with masks that it then refuses
    fits = (3, 7) <= tuple(map(int, found.split(".")[:2])) < (3, 9)
    return None if fits else f"the interpreter of Triton 3.7 or 3.8 is needed, not {found}"


@pytest.mark.skipif(_missing() is not None, reason=str(_missing()))
def test_kernels_in_the_interpreter() -> None:
    """Without a GPU, Triton interprets its kernels: in a process of its own, because it must be told before it is imported."""
    folder = Path(__file__).with_name("triton")
    files = sorted(f.name for f in folder.glob("test_*.py"))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:xdist", str(folder)],
        env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-20000:] + done.stderr[-2000:]
    passed = [line for line in done.stdout.splitlines() if line.startswith("PASSED")]
    assert files and all(any(f"/{name}::" in line for line in passed) for name in files)
    assert "skipped" not in done.stdout.splitlines()[-1]
