"""ESAN's own training loop (``run`` of its main.py, evaluation and all) on a dataset and split of ours, with node marking.

Its datasets, which would be downloaded and preprocessed, are replaced by loaders of the same graphs, made by its own
``Graph2Subgraph``; its evaluator of OGB's by the same metric of ours; its log by a clock. Its model is its own, in the sizes
of our config.
"""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from queue import Queue
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
import torch_geometric.data
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

from enfa.training.build import open_benchmark
from enfa.training.score import make_metric
from enfa.training.settings.config import Config
from peer_parts.esan import modules, transform_of
from peer_parts.missing import stand_in

__all__ = ["train"]


def train(folder: Path, config: Config, epochs: int, part: float) -> dict[str, Any]:
    """Seconds and scores. ``part``: of the graphs of each split, where fewer are to do."""
    marks: list[float] = []  # when each epoch ended
    log = SimpleNamespace(log=lambda values: marks.append(time.perf_counter()) if "Metric/valid" in values else None)
    stand_in(wandb={"log": lambda values: None, "init": lambda **about: log, "join": lambda: None})
    torch_geometric.data.DataLoader = DataLoader  # type: ignore[attr-defined] # where it was
    their_data, _, _ = modules(folder)
    sys.path.insert(0, str(folder))
    utils, main = import_module("utils"), import_module("main")
    benchmark = open_benchmark(config)
    begin = time.perf_counter()
    loaders, count = _loaders(their_data, benchmark, config, part)
    prepared = time.perf_counter() - begin
    molecules = benchmark.edge_channels is not None
    outputs = benchmark.num_outputs if benchmark.task == "binary" else 1
    metric = benchmark.metric if molecules else "acc"
    width = config.hidden_channels if molecules else _features(benchmark, benchmark.graphs[0]).shape[1]

    def get_model(args: Any, *rest: Any) -> Any:
        model = utils.get_model(args, *rest)
        if molecules:
            model.subgraph_gnn.gnn_node.atom_encoder.num_added = 1
        return model

    main.get_data = lambda args, fold: (*loaders, (width + 1, outputs, "classification", metric))
    main.get_model, main.Evaluator = get_model, lambda name: _Evaluator(benchmark.metric)
    args = Namespace(
        seed=config.seed, dataset=f"{'ogb ' if molecules else ''}{benchmark.name}", policy="ego_nets_plus", model="deepsets",
        gnn_type="gin" if molecules else "originalgin", num_layer=config.num_layers, emb_dim=config.hidden_channels,
        drop_ratio=config.dropout, jk=config.jk or "last", channels=[64, 64] if molecules else [32, 32],
        learning_rate=config.lr, decay_step=config.lr_decay_every, decay_rate=config.lr_decay, epochs=epochs, fraction=1.0,
    )  # fmt: skip
    found: Queue[Any] = Queue()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    begin = time.perf_counter()
    main.run(args, device, 0, "", "", found)
    _, valid, test = found.get()
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
    return {
        "prepare_s": prepared, "epoch_s": np.diff([begin, *marks]).tolist(), "graphs": count, "valid": list(map(float, valid)),
        "test": [float(v) for v in test] if molecules else None, "metric": benchmark.metric, "peak_bytes": peak,
    }  # fmt: skip


class _Evaluator:
    def __init__(self, metric: str) -> None:
        self.metric = metric

    def eval(self, found: dict[str, Any]) -> dict[str, float]:
        scores = torch.from_numpy(np.concatenate(found["y_pred"], -1).mean(-1))
        y = torch.from_numpy(found["y_true"]).float()
        metric = make_metric(self.metric, "binary", y.shape[1])
        metric.update(scores, y)
        return {self.metric: float(metric.compute())}


def _features(benchmark: Any, graph: Data) -> Any:
    """Kinds of atoms as they are, since ESAN embeds them; other kinds of nodes one-hot."""
    if benchmark.edge_channels is not None or graph.x.is_floating_point():
        return graph.x
    columns = zip(graph.x.T, benchmark.in_channels)
    return torch.cat([torch.nn.functional.one_hot(column, count).float() for column, count in columns], 1)


def _loaders(their_data: Any, benchmark: Any, config: Config, part: float) -> tuple[list[Any], int]:
    transform = transform_of(their_data, "marking")
    split = benchmark.split(config.fold, config.fold_seed, validation=config.validation)
    made: dict[int, Any] = {}

    def of(numbers: Sequence[int]) -> list[Any]:
        chosen = [int(i) for i in numbers][: max(1, round(part * len(numbers)))]
        for i in chosen:
            if i not in made:
                g = benchmark.graphs[i]
                x = _features(benchmark, g)
                made[i] = transform(Data(x=x, edge_index=g.edge_index, edge_attr=g.edge_attr, y=g.y, num_nodes=g.num_nodes))
                made[i].num_nodes = len(made[i].x)
        return [made[i] for i in chosen]

    parts = [of(split["train"]), of(split["train"]), of(split["valid"]), of(split["test"])]
    shared: dict[str, Any] = {"batch_size": config.batch_size, "follow_batch": ["subgraph_idx"]}
    return [DataLoader(graphs, shuffle=i == 0, **shared) for i, graphs in enumerate(parts)], len(made)
