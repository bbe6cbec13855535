"""The examples run as they stand."""

import os
import runpy
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("ENFA_DATA", ROOT.parent / "shared" / "data"))


Run = Callable[..., str]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script as ``__main__`` in this process, which has imported PyTorch already; returns what it printed."""

    def run(script: str, *args: object) -> str:
        path = str(ROOT / "examples" / script)
        monkeypatch.setattr(sys, "argv", [path, *map(str, args)])
        runpy.run_path(path, run_name="__main__")
        return capsys.readouterr().out

    return run


def test_quickstart(run: Run, tmp_path: Path) -> None:
    if not (DATA / "lay_out.py").is_file():
        pytest.skip(f"no real data in {DATA} (set ENFA_DATA)")
    subprocess.run([sys.executable, str(DATA / "lay_out.py"), str(tmp_path), "PROTEINS"], check=True, capture_output=True)
    said = run("quickstart.py", tmp_path, 1)
    assert "distinct: [" in said and "test accuracy 0." in said


def test_quickstart_from_one_file_of_arrays(run: Run, tmp_path: Path) -> None:
    if not (DATA / "PROTEINS.npz").is_file():
        pytest.skip(f"no real data in {DATA} (set ENFA_DATA)")
    (tmp_path / "PROTEINS.npz").symlink_to(DATA / "PROTEINS.npz")
    assert "test accuracy 0." in run("quickstart.py", tmp_path, 1)


def test_quickstart_without_data_says_what_is_missing(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("https_proxy", "http_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with pytest.raises(SystemExit, match="No data to start with") as left:
        run("quickstart.py", tmp_path)
    assert str(tmp_path / "PROTEINS" / "raw") in str(left.value.code)


def test_bring_your_own_conv(run: Run) -> None:
    assert "The same outputs" in run("bring_your_own_conv.py")


@pytest.mark.filterwarnings("error")
def test_gpu_loop(run: Run) -> None:
    """Eagerly, where there is no GPU."""
    assert len((ROOT / "examples" / "gpu_loop.py").read_text().splitlines()) < 40
    losses = [float(line.split()[3].rstrip(",")) for line in run("gpu_loop.py").splitlines()]
    assert len(losses) == 10 and losses[-1] < 0.8 * losses[0]


@pytest.mark.parametrize("script", ["lift.py", "own_model.py"])
def test_models_of_ones_own(run: Run, script: str) -> None:
    assert len((ROOT / "examples" / script).read_text().splitlines()) < 40
    assert "The same outputs" in run(script)


def _two_nodes(shards: Path) -> tuple[list[subprocess.Popen[str]], list[tuple[str, str]]]:
    """Where they meet is a port that was free; another process may have taken it since, and they would wait for ever."""
    for attempt in range(3):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        command = [sys.executable, "-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", "--rdzv-backend=c10d"]
        command += [f"--rdzv-endpoint=127.0.0.1:{port}", str(ROOT / "examples" / "sharded.py"), str(shards)]
        how: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        how["env"] = {**os.environ, "OMP_NUM_THREADS": "1", "no_proxy": "*"}
        nodes = [subprocess.Popen(command, **how) for _ in range(2)]
        try:
            return nodes, [node.communicate(timeout=120) for node in nodes]
        except subprocess.TimeoutExpired:
            for node in nodes:
                node.kill()
            if attempt == 2:
                raise
    raise AssertionError("not reached")


@pytest.mark.long
def test_sharded_on_two_nodes_as_on_one(run: Run, tmp_path: Path) -> None:
    """One process; then two, each with its own torchrun, as on two machines. docs/scale.md has the same command."""
    alone = run("sharded.py", tmp_path / "shards")
    assert "windows, error 0." in alone
    nodes, said = _two_nodes(tmp_path / "shards")
    # on a busy machine gloo may abort a process whose partner has left, when all is done; nothing else may go wrong
    assert all(node.returncode == 0 or "SIGABRT" in err for node, (_, err) in zip(nodes, said)), said
    assert alone in [out for out, _ in said], said
