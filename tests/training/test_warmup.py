from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from enfa.cli.app import app
from enfa.training import open_benchmark, read_config
from enfa.training.warmup import few_graphs, warm_up


def test_a_few_graphs_of_each_part(config_file: Callable[..., Path]) -> None:
    config = read_config(config_file(batch_size=4))
    data = open_benchmark(config)
    few, split = few_graphs(data, config), data.split(0, validation=config.validation)
    assert few.splits is not None and [len(few.splits[part]) for part in ("train", "valid", "test")] == [12, 4, 4]
    for part, graphs in few.splits.items():
        for here, there in zip(graphs, split[part]):
            assert few.graphs[here] is data.graphs[there]
    assert len(few) == len(np.unique(np.concatenate([split["train"][:12], split["valid"][:4], split["test"][:4]])))


def test_refuses(config_file: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("graph.npz", edge_index=[[0, 1], [1, 2]], y=[0, 1, 0])
    for words, message in (
        (["epochs=3"], "Expected a config file for epochs=3, got none"),
        (["no.yaml"], "no.yaml"),
        ([str(config_file()), "epochz=3"], "did you mean 'epochs'?"),
        ([str(config_file()), "level=nodes"], "Expected a config of graphs to warm up for, got one of nodes of one graph"),
    ):
        result = CliRunner().invoke(app, ["warmup", *words])
        assert result.exit_code == 2 and message in " ".join(result.stderr.split()), result.output


def test_it_leaves_nothing_but_kernels(config_file: Callable[..., Path], tmp_path: Path) -> None:
    config = read_config(config_file(batch_size=4, cache=str(tmp_path / "compiled")))
    assert warm_up(config).triton == 0  # without a GPU
    assert warm_up(config).numba == 0
    assert not (tmp_path / "runs").exists() and not (tmp_path / "compiled").exists()
