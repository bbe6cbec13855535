"""``enfa convert``: your own graphs as one ``.npz`` file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from enfa.cli.training.bad_rows import check_list, listing, say
from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, to_npz
from enfa.datasets.known import is_records, is_table
from enfa.datasets.own.csv_file import read_csv
from enfa.datasets.own.records import read_records
from enfa.graphs.numbers import how_many

__all__ = ["convert"]


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="IN", help="A .csv file of molecules, or a .jsonl or .parquet file of graphs.", show_default=False
        ),
    ],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The .npz file to write.", show_default=False)],
    smiles: Annotated[str | None, typer.Option(help="The column of SMILES strings.", show_default="the one named so")] = None,
    target: Annotated[list[str] | None, typer.Option(help="A column of labels; may be given several times.")] = None,
    task: Annotated[str, typer.Option(help="classification, regression, or auto to see which.")] = "auto",
    split: Annotated[str | None, typer.Option(help="random, scaffold or column:NAME.", show_default="none: folds")] = None,
    edges: Annotated[
        str, typer.Option(help="Of .jsonl and .parquet: 'once' adds the reverse of each edge, 'both' does not.")
    ] = "auto",
    metric: Annotated[
        str | None, typer.Option(help="What to score by, such as mae for numbers.", show_default="by label")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out rows that cannot be read.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the file if it exists.")] = False,
) -> None:
    """Write graphs as a file that enfa.datasets.from_npz and enfa train read. Molecules have the atoms' and bonds' categories
    of OGB. A line of .jsonl is an object with edges, num_nodes, and maybe x, edge_attr, y and split (docs/own_data.md)."""
    if not source.is_file():
        raise FileNotFoundError(f"There is no input file {source}")
    if out.suffix != ".npz":
        raise ValueError(f"Expected a file ending in .npz to write, got {out}")
    if edges not in ("auto", "once", "both"):
        raise ValueError(f"Expected --edges to be auto, once or both, got {edges!r}")
    if out.exists() and not force:
        raise ValueError(f"{out} exists: --force replaces it")
    unread = out.with_suffix(".bad.csv")
    check_list(unread, force)
    with listing(unread):
        if is_table(source):
            options = {"smiles": smiles, "targets": target or None, "task": task, "split": split, "skip_bad": skip_bad}
            graphs, told = _molecules(source, unread, metric, options)
        elif is_records(source):
            for given, name in ((smiles, "--smiles"), (target, "--target"), (split, "--split"), (task != "auto", "--task")):
                if given:
                    raise ValueError(f"Expected no {name} but for a .csv file of molecules, got {source}")
            graphs, told = _records(source, unread, metric, skip_bad)
            told["edges"] = edges
        else:
            raise ValueError(f"Expected a file ending in .csv, .tsv, .jsonl, .ndjson or .parquet, got {source}")
    to_npz(graphs, out, force=force, **told)
    Console().print(f"{how_many(len(graphs), 'graph')} in {out}", markup=False, soft_wrap=True)


def _molecules(source: Path, unread: Path, metric: str | None, options: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    found = read_csv(source, report=lambda bad, unlabelled: say(bad, unread, unlabelled), **options)
    told: dict[str, Any] = {
        "in_channels": ATOM_CHANNELS,
        "edge_channels": BOND_CHANNELS,
        "splits": found.splits,
        "metric": metric,
    }
    if found.labels is not None and found.y is not None:
        for graph, label in zip(found.graphs, torch.from_numpy(found.y).split(1)):
            graph.y = label
        told |= {"targets": found.labels.targets, "classes": found.labels.classes}
        if metric is None and found.labels.task == "regression":
            told["metric"] = "mae"
    return found.graphs, told


def _records(source: Path, unread: Path, metric: str | None, skip_bad: bool) -> tuple[list[Any], dict[str, Any]]:
    found = read_records(source, skip_bad)
    say(found.bad, unread)
    return found.graphs, {"splits": found.splits, "level": found.level, "metric": metric}
