from collections.abc import Callable
from pathlib import Path

import numpy as np

from enfa.training import open_benchmark, read_config
from enfa.training.warmup import few_graphs, warm_up


def test_a_few_graphs_of_each_part(config_file: Callable[..., Path]) -> None:
    config = read_config(config_file(batch_size=4))
    data = open_benchmark(config)
    few, split = few_graphs(data, config), data.split(0)
    assert few.splits is not None and [len(few.splits[part]) for part in ("train", "valid", "test")] == [12, 4, 4]
    for part, graphs in few.splits.items():
        for here, there in zip(graphs, split[part]):
            assert few.graphs[here] is data.graphs[there]
    assert len(few) == len(np.unique(np.concatenate([split["train"][:12], split["valid"][:4]])))


def test_it_leaves_nothing_but_kernels(config_file: Callable[..., Path], tmp_path: Path) -> None:
    config = read_config(config_file(batch_size=4, cache=str(tmp_path / "compiled")))
    assert warm_up(config).triton == 0  # without a GPU
    assert warm_up(config).numba == 0
    assert not (tmp_path / "runs").exists() and not (tmp_path / "compiled").exists()
