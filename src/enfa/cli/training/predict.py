"""``enfa predict``: a CSV file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.training.checkpoint import trained_on
from enfa.training.disk import write_csv
from enfa.training.predict import predict as predict_rows

__all__ = ["predict"]


def predict(
    checkpoint: Annotated[Path, typer.Argument(help="A checkpoint of enfa train.", show_default=False)],
    graphs: Annotated[
        Path,
        typer.Argument(
            help="An .npz file of graphs (as enfa.datasets.from_npz reads, y not needed), a .csv file with a column "
            "'smiles', or any other file with a SMILES string at the beginning of every line.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")] = Path("predictions.csv"),
    batch_size: Annotated[int, typer.Option(min=1, help="Graphs at a time.")] = 32,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Predict with a trained model: a line per graph, with the probability of every class or task, or the number that was
    learned (of nodes a line each), in the units of the data.

    Says on standard error what the model was trained on: dataset, policy, epoch and the metric it reached there.
    """
    told = f"{checkpoint}: {trained_on(checkpoint)}"  # what is read is checked before what is written
    if not graphs.is_file():
        raise FileNotFoundError(f"There is no input file {graphs}")
    if out.is_dir():
        raise ValueError(f"Expected --out to be a file, got the folder {out}")
    if out.exists() and not force:
        raise ValueError(f"{out} exists: --force replaces it")
    rows = predict_rows(checkpoint, graphs, batch_size)
    write_csv(out, rows)
    Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
    Console().print(f"{len(rows)} predictions in {out}", markup=False, soft_wrap=True)
