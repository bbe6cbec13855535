"""``enfa predict``: a CSV file of predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from enfa.cli.training.bad_rows import check_list, listing, say, say_unseen
from enfa.graphs.numbers import how_many
from enfa.training.checkpoint import load_model, trained_on
from enfa.training.disk import write_csv
from enfa.training.trained.members import members
from enfa.training.trained.predict import predict as predict_graphs
from enfa.training.trained.predict_table import predict_table

__all__ = ["predict"]


def predict(
    checkpoint: Annotated[
        Path, typer.Argument(help="A checkpoint of enfa train, or the folder of a run or of an ensemble.", show_default=False)
    ],
    graphs: Annotated[
        Path,
        typer.Argument(
            help="A .csv file of molecules, an .npz file of graphs (as enfa.datasets.from_npz reads, y not needed), or any "
            "other file with a SMILES string at the beginning of every line.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write.")] = Path("predictions.csv"),
    smiles: Annotated[str | None, typer.Option(help="The column of SMILES strings.", show_default="as trained")] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave predictions blank for rows that cannot be read.")] = False,
    batch_size: Annotated[int, typer.Option(min=1, help="Graphs at a time.")] = 32,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Predict with a trained model: a line per graph, with the probability of every class or task, or the number that was
    learned (of nodes a line each), in the units of the data. Of an ensemble the mean, and the deviation between its models.

    The columns of a .csv file are kept, and predictions stand behind them. Says on standard error what the model was trained
    on: dataset, policy, epoch and the metric it reached there.
    """
    every = members(checkpoint)
    models = f"{len(every)} models, the first " if len(every) > 1 else ""
    told = f"{checkpoint}: {models}{trained_on(every[0])}"  # what is read is checked before what is written
    if not graphs.is_file():
        raise FileNotFoundError(
            f"There is no input file {graphs}: Expected a .csv file with a column smiles, another file with a SMILES string on "
            f"every line, or an .npz file of graphs (one SMILES string by itself: enfa explain)"
        )
    if out.is_dir():
        raise ValueError(f"Expected --out to be a file, got the folder {out}")
    if out.exists() and out.samefile(graphs):
        raise ValueError(f"Expected --out to be another file than the one that is read, got {out}")
    unread = out.with_suffix(".bad.csv")
    if out.exists() and not force:
        raise ValueError(f"{out} exists: --force replaces it")
    check_list(unread, force)
    left_out, waiting = "", Console(stderr=True).status("predicting …")  # on a terminal; elsewhere nothing
    if graphs.suffix == ".npz" or load_model(every[0])[2].level == "node":
        for given, name in ((smiles, "--smiles"), (skip_bad, "--skip-bad")):
            if given:
                raise ValueError(f"Expected no {name} but for graphs out of a table of molecules, got {graphs}")
        with waiting:
            rows = predict_graphs(checkpoint, graphs, batch_size)
        count = len(rows)
        write_csv(out, rows)
    else:
        with listing(unread), waiting:  # over before rows are listed
            found = predict_table(checkpoint, graphs, smiles, batch_size, skip_bad)
        say(found.bad, unread)
        rows, count = found.rows, found.count
        verb = "is" if len(found.bad) == 1 else "are"
        left_out = f"; {how_many(len(found.bad), 'row')} could not be read and {verb} blank" if found.bad else ""
        say_unseen(found.unseen)
        write_csv(out, rows, found.table.delimiter)
    Console(stderr=True).print(told, markup=False, highlight=False, soft_wrap=True)
    Console().print(f"{how_many(count, 'prediction')} in {out}{left_out}", markup=False, soft_wrap=True)
