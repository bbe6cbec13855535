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


def test_of_rare_answers_one_is_among_the_few(config_file: Callable[..., Path], make_npz: Callable[..., Path]) -> None:
    """Of 32 molecules of ogbg-molhiv none may be active, and ROC-AUC of these is not defined."""
    y = np.zeros((60, 2), dtype=np.float32)
    y[[19, 39, 59], 1] = 1
    parts = {f"split_{part}": np.arange(20) + 20 * k for k, part in enumerate(("train", "valid", "test"))}
    rare = make_npz(y, **parts)
    config = read_config(config_file(dataset=str(rare), batch_size=4))
    few = few_graphs(open_benchmark(config), config)
    assert few.splits is not None and [len(few.splits[part]) for part in ("train", "valid", "test")] == [12, 4, 4]
    for graphs in few.splits.values():
        assert set(few.labels[graphs, 1]) == {0, 1}
    assert warm_up(config).seconds > 0


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
