"""Explanations of a trained model's prediction for one graph of a file, or one molecule."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from enfa.attribution import Explanation, explain
from enfa.datasets import from_smiles
from enfa.datasets.known import is_table
from enfa.datasets.npz.read import Need
from enfa.datasets.own import graphs_from_npz
from enfa.training.build import make_policy, training_draw
from enfa.training.checkpoint import load_model, trained_on
from enfa.training.problem import Problem
from enfa.training.trained.predict import read_smiles

__all__ = ["Explained", "explain_one", "read_one"]

FILES = (".npz", ".csv", ".smi", ".txt", ".tsv")


@dataclass(frozen=True)
class Explained:
    """An explanation, and what it is of."""

    explanation: Explanation
    graph: Data
    smiles: str | None
    target: str
    units: str
    trained_on: str

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {
            "trained_on": self.trained_on,
            "target": self.target,
            "units": self.units,
            "smiles": self.smiles,
        }
        found |= self.explanation.to_dict()
        if self.smiles is not None:
            for node, symbol in zip(found["nodes"], _symbols(self.smiles)):
                node["atom"] = symbol
        return found


def _symbols(smiles: str) -> list[str]:
    from rdkit import Chem

    return [atom.GetSymbol() for atom in Chem.MolFromSmiles(smiles).GetAtoms()]


def read_one(
    text: str,
    row: int,
    use_node_attr: bool = False,
    column: str | None = None,
    given: str | None = None,
    needs: Sequence[Need] = (),
) -> tuple[Data, str | None]:
    """One graph, and its SMILES if it is a molecule: of a file the one with number ``row``, counted from 0 as in what
    ``enfa predict`` writes; or of the SMILES string that ``text`` is. ``column``: that of SMILES, if it is there, unless
    another is ``given``."""
    path = Path(text)
    if given is not None and not is_table(path):
        raise ValueError(f"Expected no --smiles but for a table of molecules, got {text}")
    if path.is_file() and path.suffix == ".npz":
        graphs = graphs_from_npz(path, use_node_attr=use_node_attr, needs=needs)
        return graphs[_within(path, row, len(graphs))], None
    if not path.is_file() and path.suffix in FILES:
        raise FileNotFoundError(f"There is no input file {path}")
    every = read_smiles(path, column, given) if path.is_file() else [text]
    smiles = every[_within(text, row, len(every))]
    try:
        return from_smiles([smiles])[0], smiles
    except ValueError as error:
        kind = f"row {row} of {path}" if path.is_file() else "a file that exists, or a molecule"
        raise ValueError(f"Expected {kind} to be a SMILES string, got {smiles!r}") from error


def _within(what: object, row: int, count: int) -> int:
    if not 0 <= row < count:
        raise ValueError(f"Expected --row from 0 to {count - 1} for {what}, got {row}")
    return row


def _names(problem: Problem) -> list[str] | None:
    """Of the outputs; the one target of a multiclass task has several."""
    return problem.classes if problem.task == "multiclass" else problem.targets


def _target(problem: Problem, target: str | None) -> int | None:
    """The number of an output by its name, or by its number; None: the class that is predicted."""
    names = _names(problem) or [str(k) for k in range(problem.num_outputs)]
    if target is None:
        if problem.task != "multiclass" and problem.num_outputs > 1:
            raise ValueError(f"Expected --target, one of {', '.join(names)}, for a model with several, got none")
        return None
    if target in names:
        return names.index(target)
    # a number counts outputs, unless that is what they are called
    if target.isdigit() and int(target) < problem.num_outputs and not any(map(_is_number, names)):
        return int(target)
    raise ValueError(f"Expected --target to be one of {', '.join(names)}, got {target!r}")


def _is_number(name: str) -> bool:
    return name.removeprefix("-").isdigit()


def explain_one(
    checkpoint: str | Path,
    text: str,
    row: int = 0,
    target: str | None = None,
    node: int | None = None,
    column: str | None = None,
) -> Explained:
    """In float64, so that small differences are no rounding errors. Of classes and yes/no tasks it is the logit that is
    explained, of numbers the prediction in the units of the data."""
    model, config, problem = load_model(checkpoint)
    if problem.level in ("nodes", "links"):
        raise ValueError(
            f"Expected a model of graphs, got one of {problem.level} of one graph: in Python, enfa.explain(model, policy, "
            f"graph, node=...) explains nodes"
        )
    output = _target(problem, target)
    graph, smiles = read_one(text, row, config.use_node_attr, config.smiles, column, problem.needs)
    draw = training_draw(config)  # of which whole bags are evaluated
    policy = make_policy(config) if draw is None else draw.policy
    found = explain(model.double(), policy, graph, output=output, node=node, position=row)
    names, units = _names(problem), "logit"
    if problem.task == "regression":
        units = "the data's"
        if problem.std is not None and problem.mean is not None:
            found = found.scaled(problem.std, problem.mean)
    name = names[found.output] if names else str(found.output)
    if problem.task == "multiclass" and _is_number(name):
        name = f"class {name}"
    return Explained(found, graph, smiles, name, units, trained_on(checkpoint))
