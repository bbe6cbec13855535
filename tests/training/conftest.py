"""Small data, small models, and the command line as users call it."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

pytest.importorskip("lightning", reason="training needs the extra enfa[train]")

DATA = Path(os.environ.get("ENFA_DATA", Path(__file__).resolve().parents[3] / "shared" / "data"))
SETTINGS = {
    "num_layers": 2, "hidden_channels": 8, "jk": "concat", "epochs": 4, "batch_size": 8, "lr": 0.01, "lr_decay_every": 2,
    "accelerator": "cpu", "threads": 1, "precision": "64",
}  # fmt: skip


@pytest.fixture(autouse=True)
def one_thread() -> None:
    torch.set_num_threads(1)


def write_npz(path: Path, y: np.ndarray, seed: int = 0, **arrays: np.ndarray) -> Path:
    """Random graphs, one per label, in the format of enfa.datasets.from_npz."""
    rng = np.random.default_rng(seed)
    num_nodes = rng.integers(4, 9, len(y))
    edges = []
    for n in num_nodes:
        drawn = {(int(a), int(b)) for a, b in rng.integers(0, n, (2 * n, 2)) if a < b} | {(0, 1)}
        edges.append(np.array(sorted(drawn)))
    x = rng.integers(0, 3, num_nodes.sum())
    np.savez(
        path, num_nodes=num_nodes, num_edges=[len(e) for e in edges], edges=np.concatenate(edges), node_label=x, y=y, **arrays
    )  # fmt: skip
    return path


@pytest.fixture
def npz(tmp_path: Path) -> Path:
    """40 graphs of two classes."""
    return write_npz(tmp_path / "tiny.npz", np.arange(40) % 2)


@pytest.fixture
def make_npz(tmp_path: Path) -> Callable[..., Path]:
    def make(y: np.ndarray, name: str = "other", **arrays: np.ndarray) -> Path:
        return write_npz(tmp_path / f"{name}.npz", y, **arrays)

    return make


@pytest.fixture
def config_file(tmp_path: Path, npz: Path) -> Callable[..., Path]:
    def write(name: str = "tiny", **settings: object) -> Path:
        path = tmp_path / f"{name}.yaml"
        values = {"dataset": str(npz), "out": str(tmp_path / "runs"), **SETTINGS, **settings}
        path.write_text(yaml.safe_dump(values))
        return path

    return write


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, bytes]:
    """A config file that has been trained, its graphs, and the bytes of its last checkpoint."""
    from enfa.training import fit, read_config
    from enfa.training.settings.folder import LAST, folder_of

    folder = tmp_path_factory.mktemp("run")
    npz, path = write_npz(folder / "tiny.npz", np.arange(40) % 2), folder / "tiny.yaml"
    path.write_text(yaml.safe_dump({"dataset": str(npz), "out": str(folder / "runs"), **SETTINGS, "epochs": 2}))
    config = read_config(path)
    fit(config, progress=False)
    return path, npz, (folder_of(config) / LAST).read_bytes()


@pytest.fixture
def enfa() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line in a process of its own."""

    def run(*args: object, **options: object) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "enfa", *map(str, args)]
        return subprocess.run(command, capture_output=True, text=True, timeout=300, **options)  # type: ignore[call-overload]

    return run


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of compact real datasets."""
    if not (DATA / "PROTEINS.npz").is_file():
        pytest.skip(f"no real data in {DATA} (set ENFA_DATA)")
    return DATA
