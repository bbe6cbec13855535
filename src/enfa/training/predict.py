"""Predictions of a checkpoint for new graphs."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch import DataLoader
from enfa.datasets import from_smiles
from enfa.datasets.own import graphs_from_npz
from enfa.training.build import Problem, compile_for
from enfa.training.checkpoint import load_model
from enfa.training.one_graph import predict_roots

__all__ = ["predict", "read_graphs", "read_smiles"]


def read_smiles(path: Path) -> list[str]:
    """SMILES strings: the column ``smiles`` of a CSV file, else the first word of every line."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            if path.suffix != ".csv":
                found = [line.split()[0] for line in file if line.strip()]
            else:
                rows = csv.DictReader(file)
                names = {name.strip().lower(): name for name in rows.fieldnames or ()}
                if "smiles" not in names:
                    raise ValueError(
                        f"{path}: Expected a column 'smiles', got {', '.join(rows.fieldnames or ()) or 'none'}"
                    )
                found = [row[names["smiles"]].strip() for row in rows]
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is not a text file of SMILES strings") from error
    if not found:
        raise ValueError(f"{path}: Expected at least one SMILES string, got none")
    return found


def read_graphs(path: Path, use_node_attr: bool = False) -> tuple[list[Data], list[str] | None]:
    """The graphs of an ``.npz`` file, or of a file of SMILES strings together with these."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no input file {path}")
    if path.suffix == ".npz":
        return graphs_from_npz(path, use_node_attr=use_node_attr), None
    smiles = read_smiles(path)
    try:
        return from_smiles(smiles), smiles
    except ImportError as error:  # rdkit is an extra
        raise ValueError(str(error)) from error


@torch.no_grad()
def probabilities(checkpoint: str | Path, graphs: Sequence[Data], batch_size: int) -> tuple[Tensor, Problem]:
    """[G, outputs], and what they are: classes whose probabilities add up to 1, yes/no tasks, or numbers in their own units;
    [nodes, outputs] where the numbers are of nodes."""
    model, config, problem = load_model(checkpoint)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)
    # where and how it was trained is of no concern here: a checkpoint, which may be anybody's, names no file to read or write
    compiled = compile_for(replace(config, cache=None, shards=None, threads=None), graphs, model)
    logits = torch.cat([model(plan.to(device)).double().cpu() for plan in DataLoader(compiled, batch_size)])
    if problem.task == "regression":
        std, mean = (torch.tensor(v or [d], dtype=torch.float64) for v, d in ((problem.std, 1.0), (problem.mean, 0.0)))
        return logits * std + mean, problem
    return (logits.softmax(1) if problem.task == "multiclass" else logits.sigmoid()), problem


def predict(checkpoint: str | Path, path: Path, batch_size: int = 32) -> list[dict[str, Any]]:
    """A row per graph: its number, its SMILES, its class where there are classes, the probability of each output.

    Of numbers, each by its name (``y0``, ... where it has none), in the units that the data had before they were normalised;
    where they are those of nodes, a row per node.
    """
    _, config, problem = load_model(checkpoint)
    if problem.level in ("nodes", "links"):
        return predict_roots(checkpoint, path, batch_size)
    graphs, smiles = read_graphs(path, config.use_node_attr)
    found, problem = probabilities(checkpoint, graphs, batch_size)
    rows = []
    of_nodes = problem.level == "node"
    places = [(i, v) for i, graph in enumerate(graphs) for v in range(graph.num_nodes or 0)] if of_nodes else []
    if of_nodes and len(found) != len(places):
        raise ValueError(f"Expected a policy with a subgraph for every node to predict numbers of nodes, got {config.policy}")
    for k, each in enumerate(found.tolist()):
        i = places[k][0] if of_nodes else k
        row: dict[str, Any] = {"graph": i}
        if of_nodes:
            row["node"] = places[k][1]
        if smiles is not None:
            row["smiles"] = smiles[i]
        if problem.task == "regression":
            rows.append(row | dict(zip(problem.targets or [f"y{n}" for n in range(len(each))], each)))
            continue
        if problem.task == "multiclass":
            row["class"] = max(range(len(each)), key=each.__getitem__)
        rows.append({**row, **{f"p{k}": round(p, 6) for k, p in enumerate(each)}})
    return rows
