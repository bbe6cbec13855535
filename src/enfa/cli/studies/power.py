"""``enfa power``: which graphs a model class can tell apart, without training."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from torch_geometric.data import Data

from enfa.cli.choices import OfModel, check_picture, dataset_of, default_policy, policy_of
from enfa.datasets import load_brec
from enfa.datasets.own import graphs_from_npz
from enfa.expressiveness import Power
from enfa.expressiveness import power as measure
from enfa.nn.models.registry import SHIPPED

__all__ = ["graphs_of", "power"]


def graphs_of(dataset: str, root: Path) -> tuple[str, Sequence[Data], tuple[str, ...] | None]:
    """Name, graphs and, of BREC, the category of each pair: of a benchmark, or of a file of graphs, labelled or not."""
    if dataset == "BREC":
        data = load_brec(root)
        return data.name, data.graphs, data.tabled
    path = Path(dataset)
    if path.suffix == ".npz":
        if not path.is_file():
            raise FileNotFoundError(f"{path}: no such file")
        return path.stem, graphs_from_npz(path), None
    found = dataset_of(dataset, root, also=("BREC",))
    return found.name, found.graphs, None


def power(
    dataset: Annotated[str, typer.Argument(help="BREC, SR25, CSL, any other dataset's name, or the path of an .npz file.")],
    policy: OfModel = None,
    layers: Annotated[int, typer.Option(min=1, help="The largest number of layers; all from 1 are answered.")] = 6,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(SHIPPED)}, or of --code FILE.")] = "ds",
    pairs: Annotated[bool, typer.Option("--pairs", help="Compare graphs 2p and 2p + 1 only, as for BREC.")] = False,
    pair: Annotated[int | None, typer.Option(help="Only this pair: the first layer that tells it apart.")] = None,
    root: Annotated[Path, typer.Option(envvar="ENFA_DATA", help="Folder of raw data, or of NAME.npz.")] = Path("data"),
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw it over layers into this file (.png, .pdf, .svg).")] = None,
) -> None:
    """Which graphs some weights of a model class tell apart, from distinct rows alone: exact, and nothing is trained."""
    waiting = Console(stderr=True)  # so that --json can be piped
    policy = policy or default_policy(model, waiting)
    rule = policy_of(policy)
    check_picture(plot)
    with waiting.status(f"reading {dataset}"):
        name, graphs, category = graphs_of(dataset, root)
    in_pairs = pairs or pair is not None or category is not None
    if pair is not None:
        if not 0 <= pair < len(graphs) // 2:
            raise ValueError(f"{name} has pairs 0 to {len(graphs) // 2 - 1}, got pair {pair}")
        name, graphs = f"{name}, pair {pair}", graphs[2 * pair : 2 * pair + 2]
        category = None if category is None else category[pair : pair + 1]
    found = measure(graphs, rule, model, layers, pairs=in_pairs, category=category, progress=waiting.is_terminal)
    title = f"{name}, {model} under {policy.replace('_', ' ').replace('-', ' ')}"
    if as_json:
        typer.echo(json.dumps({"dataset": name, **found.to_dict()}))
    elif pair is not None:
        first = found.first[0]
        Console().print(f"{title}: " + (f"told apart from {first} layers on" if first else f"the same up to {layers} layers"))
    else:
        _show(found, title)
    if plot is not None:
        from enfa.expressiveness.picture import draw_power

        draw_power({title: found.to_dict()}).savefig(plot)
        waiting.print(f"Wrote {plot}.")


def _show(found: Power, title: str) -> None:
    console = Console()
    what = "pairs told apart" if found.pairs else "classes of graphs"
    console.print(f"[bold]{title}: {what}[/]", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("layers")
    for column in (*found.layers, "of"):
        table.add_column(str(column), justify="right")
    for name, row in found.counts().items():
        if name == "all":
            table.add_section()
        table.add_row(name, *map(str, row), str(found.sizes[name]))
    console.print(table)
    console.print(
        "[dim]What some weights of the class tell apart: those whose pools have different rows. For the others all weights "
        "give the same output. A trained model may tell fewer apart.[/]"
    )
