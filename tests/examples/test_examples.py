"""The examples run as they stand."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ENFA_DATA", ROOT.parent / "shared" / "data"))


def run(script: str, *args: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "examples" / script), *map(str, args)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "*"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)


def test_quickstart(tmp_path: Path) -> None:
    if not (DATA / "lay_out.py").is_file():
        pytest.skip(f"no real data in {DATA} (set ENFA_DATA)")
    subprocess.run(
        [sys.executable, str(DATA / "lay_out.py"), str(tmp_path), "PROTEINS"], check=True, capture_output=True
    )
    result = run("quickstart.py", tmp_path, 1)
    assert result.returncode == 0, result.stderr
    assert "distinct: [" in result.stdout and "test accuracy 0." in result.stdout


def test_quickstart_without_data_says_what_is_missing(tmp_path: Path) -> None:
    environment = {**os.environ, "https_proxy": "http://127.0.0.1:1", "http_proxy": "http://127.0.0.1:1"}
    command = [sys.executable, str(ROOT / "examples" / "quickstart.py"), str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=120, env=environment)
    assert result.returncode == 1
    assert "No data to start with" in result.stderr and "Traceback" not in result.stderr
    assert str(tmp_path / "PROTEINS" / "raw") in result.stderr


def test_bring_your_own_conv() -> None:
    result = run("bring_your_own_conv.py")
    assert result.returncode == 0, result.stderr
    assert "The same outputs" in result.stdout


def test_gpu_loop() -> None:
    """Eagerly, where there is no GPU."""
    assert len((ROOT / "examples" / "gpu_loop.py").read_text().splitlines()) < 40
    result = run("gpu_loop.py")
    assert result.returncode == 0, result.stderr
    losses = [float(line.split()[3].rstrip(",")) for line in result.stdout.splitlines()]
    assert len(losses) == 10 and losses[-1] < 0.8 * losses[0] and "Warning" not in result.stderr


@pytest.mark.parametrize("script", ["lift.py", "own_model.py"])
def test_models_of_ones_own(script: str) -> None:
    assert len((ROOT / "examples" / script).read_text().splitlines()) < 40
    result = run(script)
    assert result.returncode == 0, result.stderr
    assert "The same outputs" in result.stdout
