"""``enfa explain``: which atoms or nodes a prediction comes from, as a picture and as JSON."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.report.explanation import SUFFIXES, draw_explanation
from enfa.training.disk import write_json
from enfa.training.trained.explain import explain_one

__all__ = ["explain"]


def explain(
    checkpoint: Annotated[
        Path,
        typer.Argument(help="A checkpoint of enfa train, the folder of a run, or one of save_pretrained.", show_default=False),
    ],
    graphs: Annotated[
        str,
        typer.Argument(
            help="An .npz file of graphs, a .csv or .tsv file with a column 'smiles', any other file with a SMILES "
            "string at the beginning of every line, or a SMILES string.",
            show_default=False,
        ),
    ],
    row: Annotated[int, typer.Option(help="Which graph of the file, counted from 0 as in enfa predict.")] = 0,
    smiles: Annotated[str | None, typer.Option(help="The column of SMILES strings.", show_default="as trained")] = None,
    target: Annotated[
        str | None, typer.Option(help="Which output, by its name or number.", show_default="the class predicted")
    ] = None,
    node: Annotated[int | None, typer.Option(help="Whose output, of models with outputs for nodes.")] = None,
    out: Annotated[Path, typer.Option(help="The picture to write (.svg, .png); a .json file is written beside it.")] = Path(
        "explanation.svg"
    ),
    force: Annotated[bool, typer.Option("--force", help="Replace the files if they exist.")] = False,
) -> None:
    """Explain one prediction: the gradient times the input of every atom (or node), and how the prediction changes when its
    subgraph is left out of the bag. Both are exact."""
    if out.suffix not in SUFFIXES:
        raise ValueError(f"Expected --out to end in {' or '.join(SUFFIXES)}, got {out}")
    beside = out.with_suffix(".json")
    for path in (out, beside):
        if path.exists() and not force:
            raise ValueError(f"{path} exists: --force replaces it")
    found = explain_one(checkpoint, graphs, row, target, node, smiles)
    out.parent.mkdir(parents=True, exist_ok=True)
    number, what = found.explanation.prediction, "prediction" if found.units != "logit" else "logit"
    title = f"{found.target}: {what} {number:.4g}"
    draw_explanation(out, found.explanation, found.graph, smiles=found.smiles, title=title)
    write_json(beside, found.to_dict())
    console, told = Console(), Console(stderr=True)
    told.print(f"{checkpoint}: {found.trained_on}", markup=False, highlight=False, soft_wrap=True)
    if found.explanation.why_not is not None:
        told.print(f"Gradients only: {found.explanation.why_not}", markup=False, highlight=False, soft_wrap=True)
    console.print(f"{found.target}: {what} {number:.6g}; {out}, {beside}", markup=False, highlight=False, soft_wrap=True)
