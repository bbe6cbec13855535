"""Predictions of a checkpoint, or of an ensemble of them, for new graphs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.batch import DataLoader
from enfa.datasets import from_smiles
from enfa.datasets.npz.read import Need
from enfa.datasets.own import graphs_from_npz
from enfa.datasets.own.molecule_rows import smiles_column
from enfa.datasets.own.table import read_table
from enfa.training.checkpoint import load_model
from enfa.training.compiling import compile_for
from enfa.training.one_graph import predict_roots
from enfa.training.problem import Problem
from enfa.training.settings.config import MODEL, Config
from enfa.training.trained.members import members
from enfa.training.trained.predictions import scaled

__all__ = ["Outputs", "outputs", "predict", "read_smiles"]


def read_smiles(path: Path, column: str | None = None, given: str | None = None) -> list[str]:
    """SMILES strings: the column of a CSV file that is ``given``; else ``column`` where there is one of that name, else the one
    named ``smiles``; of other files the first word of every line."""
    table = read_table(path)
    return table.column(smiles_column(table, given or (column if column in table.columns else None)))


def read_graphs(path: Path, use_node_attr: bool, needs: Sequence[Need]) -> tuple[list[Data], list[str] | None]:
    """The graphs of an ``.npz`` file, or of a file of SMILES strings together with these. ``needs``: of ``graphs_from_npz``."""
    if not path.is_file():
        raise FileNotFoundError(f"There is no input file {path}")
    if path.suffix == ".npz":
        return graphs_from_npz(path, use_node_attr=use_node_attr, needs=needs), None
    smiles = read_smiles(path)
    return from_smiles(smiles), smiles


@dataclass(frozen=True)
class Outputs:
    """What a model says of each graph (or node): probabilities of classes, which add up to 1, or of yes/no tasks; or numbers in
    their own units. Of an ensemble the mean, and the standard deviation over its members."""

    values: Tensor  # [G, outputs], or [nodes, outputs] where they are of nodes
    deviation: Tensor | None
    problem: Problem

    def named(self, prefix: bool) -> Iterator[dict[str, Any]]:
        """Each row by the names of its columns.

        Those of yes/no tasks are ``p0``, ... and of numbers their targets' names, or ``y0``, ...; with ``prefix``, where other
        columns may have these names, ``probability_TARGET`` and ``predicted_TARGET``. Of classes the likeliest comes first;
        their columns are ``probability_CLASS`` where they are called anything but 0, 1, ...
        """
        columns, best = self._columns(prefix)
        if self.deviation is not None and {f"{name}_deviation" for name in columns} & set(columns):
            raise ValueError(f"Expected no target or class whose name is another's with _deviation behind it, got {columns}")
        digits = None if self.problem.task == "regression" else 6
        spread = [None] * len(self.values) if self.deviation is None else self.deviation.tolist()
        for each, around in zip(self.values.tolist(), spread):
            row: dict[str, Any] = {}
            if best is not None:
                likeliest = max(range(len(each)), key=each.__getitem__)
                row[best] = likeliest if self.problem.classes is None else self.problem.classes[likeliest]
            for k, (name, value) in enumerate(zip(columns, each)):
                row[name] = value if digits is None else round(value, digits)
                if around is not None:
                    row[f"{name}_deviation"] = around[k] if digits is None else round(around[k], digits)
            yield row

    def _columns(self, prefix: bool) -> tuple[list[str], str | None]:
        problem = self.problem
        if problem.task == "regression":
            names = problem.targets or [f"y{k}" for k in range(problem.num_outputs)]
            return ([f"predicted_{name}" for name in names] if prefix and problem.targets else names), None
        plain = [f"p{k}" for k in range(problem.num_outputs)]
        if problem.task == "binary":
            return ([f"probability_{name}" for name in problem.targets] if prefix and problem.targets else plain), None
        best = f"predicted_{problem.targets[0]}" if prefix and problem.targets else "class"
        return ([f"probability_{name}" for name in problem.classes] if problem.classes else plain), best


def _loaded(source: Path) -> list[tuple[torch.nn.Module, Config, Problem]]:
    """The models of a checkpoint or of a folder, which must be alike."""
    found = [load_model(path) for path in members(source)]
    _, config, problem = found[0]
    for path, (_, other, of) in zip(members(source), found):
        if of != problem or any(getattr(other, name) != getattr(config, name) for name in MODEL):
            raise ValueError(f"{path}: Expected models of one kind, trained for one problem, in an ensemble, got another")
    return found


@torch.no_grad()
def outputs(source: str | Path, graphs: Sequence[Data], batch_size: int = 32) -> Outputs:
    """Of a checkpoint, or of the folder of an ensemble."""
    found = _loaded(Path(source))
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, config, problem = found[0]
    # where and how it was trained is of no concern here: an untrusted checkpoint names no file to read or write
    compiled = compile_for(replace(config, cache=None, shards=None, threads=None), graphs, model)  # all ask for the same steps
    each = []
    for one, _, _ in found:
        one = one.to(device)
        each.append(torch.cat([one(plan.to(device)) for plan in DataLoader(compiled, batch_size)]))
    return _joined(each, problem)


def _joined(each: Sequence[Tensor], problem: Problem) -> Outputs:
    values = torch.stack([scaled(logits, problem) for logits in each])
    return Outputs(values.mean(0), values.std(0) if len(each) > 1 else None, problem)


def predict(checkpoint: str | Path, path: Path, batch_size: int = 32) -> list[dict[str, Any]]:
    """A row per graph: its number, its SMILES, its class where there are classes, the probability of each output.

    Of numbers, each by its name (``y0``, ... where it has none), in the units that the data had before they were normalised;
    where they are those of nodes, a row per node.
    """
    _, config, problem = load_model(members(Path(checkpoint))[0])
    if problem.level in ("nodes", "links"):
        about, logits = predict_roots(_loaded(Path(checkpoint)), path, batch_size)
        return [row | more for row, more in zip(about, _joined(logits, problem).named(prefix=False))]
    graphs, smiles = read_graphs(path, config.use_node_attr, problem.needs)
    found = outputs(checkpoint, graphs, batch_size)
    of_nodes = problem.level == "node"
    places = [(i, v) for i, graph in enumerate(graphs) for v in range(graph.num_nodes or 0)] if of_nodes else []
    if of_nodes and len(found.values) != len(places):
        raise ValueError(f"Expected a policy with a subgraph for every node to predict numbers of nodes, got {config.policy}")
    rows = []
    for k, each in enumerate(found.named(prefix=False)):
        i = places[k][0] if of_nodes else k
        row: dict[str, Any] = {"graph": i}
        if of_nodes:
            row["node"] = places[k][1]
        if smiles is not None:
            row["smiles"] = smiles[i]
        rows.append(row | each)
    return rows
