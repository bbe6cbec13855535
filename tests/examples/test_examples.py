"""The examples run as they stand."""

import os
import socket
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
    subprocess.run([sys.executable, str(DATA / "lay_out.py"), str(tmp_path), "PROTEINS"], check=True, capture_output=True)
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


def test_sharded_on_two_nodes_as_on_one(tmp_path: Path) -> None:
    """One process; then two, each with its own torchrun, as on two machines. docs/scale.md has the same command."""
    alone = run("sharded.py", tmp_path / "shards")
    assert alone.returncode == 0, alone.stderr
    assert "windows, error 0." in alone.stdout
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
    command += [f"--rdzv-endpoint=127.0.0.1:{port}", str(ROOT / "examples" / "sharded.py"), str(tmp_path / "shards")]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "*"}
    nodes = [
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) for _ in range(2)
    ]
    said = [node.communicate(timeout=300) for node in nodes]
    # on a busy machine gloo may abort a process whose partner has left, when all is done; nothing else may go wrong
    assert all(node.returncode == 0 or "SIGABRT" in err for node, (_, err) in zip(nodes, said)), said
    assert alone.stdout in [out for out, _ in said], said
