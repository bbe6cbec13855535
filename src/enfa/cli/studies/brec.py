"""``enfa brec``: BREC's own protocol, which trains a network for every pair, beside what its class can tell apart at all."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from enfa.atomic import write_atomically
from enfa.cli.choices import OfModel, default_policy, policy_of
from enfa.cli.studies.power import graphs_of
from enfa.expressiveness import power as measure
from enfa.expressiveness.models import model_class
from enfa.expressiveness.trained import Protocol, train_pair
from enfa.graphs import check_graphs
from enfa.nn.models.registry import SHIPPED

__all__ = ["brec"]


def brec(
    dataset: Annotated[str, typer.Argument(help="BREC, or the path of an .npz file with pairs of graphs.")] = "BREC",
    policy: OfModel = None,
    layers: Annotated[int, typer.Option(min=1, help="Message-passing layers.")] = 6,
    model: Annotated[str, typer.Option(help=f"One of {', '.join(SHIPPED)}, or of --code FILE.")] = "dss",
    width: Annotated[int, typer.Option(min=1, help="Hidden channels.")] = 32,
    pairs: Annotated[str, typer.Option(help="Some of the pairs, such as 0:60; all by default.")] = "",
    epochs: Annotated[int, typer.Option(min=1, help="At most so many for a pair.")] = Protocol.epochs,
    seed: Annotated[
        int, typer.Option(min=0, help="Of weights and relabellings; the authors take 100, 200, ... 1000.")
    ] = Protocol.seed,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    root: Annotated[Path, typer.Option(envvar="ENFA_DATA", help="Folder of BREC.npz.")] = Path("data"),
    out: Annotated[Path | None, typer.Option(help="JSON of the results. Pairs that it holds are not trained again.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")] = False,
) -> None:
    """Train a siamese network for every pair and test whether it tells the pair apart, and reliably (T² tests).

    Ends with code 1 if a pair is told apart that its model class cannot tell apart.
    """
    waiting = Console(stderr=True)
    policy = policy or default_policy(model, waiting)
    rule = policy_of(policy)
    if device != "cpu" and not (device.startswith("cuda") and torch.cuda.is_available()):
        raise ValueError(f"Expected --device cpu, or cuda where PyTorch sees a GPU, got {device!r}")
    name, graphs, category = graphs_of(dataset, root)
    chosen = _range(pairs, len(graphs) // 2)
    protocol = Protocol(epochs=epochs, seed=seed)
    settings = {"dataset": name, "policy": repr(rule), "model": model, "layers": layers, "width": width, **asdict(protocol)}
    found = _read(out, settings)
    make = model_class(model, check_graphs(graphs), rule, width)
    with Progress(console=waiting, disable=not waiting.is_terminal) as bar:
        task = bar.add_task("training", total=len(chosen))
        for p in chosen:
            if str(p) not in found["pairs"]:
                both = graphs[2 * p : 2 * p + 2]
                one = train_pair(both, rule, lambda: make(layers), protocol, device=device, number=p)
                bound = measure(both, rule, model, [layers]).first[0] is not None
                found["pairs"][str(p)] = {**one.to_dict(), "bound": bound, "category": category[p] if category else "pairs"}
                if out is not None:
                    write_atomically(out, [json.dumps(found, indent=1).encode()])
            bar.update(task, advance=1)
    results = {str(p): found["pairs"][str(p)] for p in chosen}
    if as_json:
        typer.echo(json.dumps({**found, "pairs": results}))
    else:
        _show(results, f"{name}, {model} under {policy.replace('_', ' ')}, {layers} layers, seed {seed}")
    outside = [p for p, one in results.items() if one["apart"] and one["reliable"] and not one["bound"]]
    if outside:
        waiting.print(f"[bold red]Told apart, though no weights can: pairs {', '.join(outside)}[/]")
        raise typer.Exit(1)


def _range(text: str, count: int) -> range:
    """``0:60`` or ``17``."""
    first, colon, last = text.partition(":")
    if not text:
        return range(count)
    if not first.isdigit() or (colon and not last.isdigit()):
        raise ValueError(f"Expected pairs such as 0:60 or 17, got {text!r}")
    found = range(int(first), int(last) if colon else int(first) + 1)
    if not len(found) or found[-1] >= count:
        raise ValueError(f"Expected some of the pairs 0 to {count - 1}, got {text!r}")
    return found


def _read(path: Path | None, settings: dict[str, Any]) -> dict[str, Any]:
    """What a file holds of the same settings; one of others is refused."""
    if path is None or not path.exists():
        return {"settings": settings, "pairs": {}}
    try:
        found = json.loads(path.read_text())
        there, _ = found["settings"], found["pairs"].items()
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{path}: expected results of enfa brec, got something else ({error})") from error
    for key, value in settings.items():
        if there.get(key) != value:
            raise ValueError(f"{path} holds results of {key} {there.get(key)!r}, not {value!r}: name another file")
    return found


def _show(results: dict[str, Any], title: str) -> None:
    console = Console()
    console.print(f"[bold]{title}[/]", soft_wrap=True)
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in ("", "told apart", "bound", "of", "not reliable"):
        table.add_column(column, justify="right" if column else "left")
    names = dict.fromkeys(one["category"] for one in results.values())
    for name in (*names, "all"):
        part = [one for one in results.values() if name in ("all", one["category"])]
        counts = [sum(map(bool, values)) for values in (
            [one["apart"] and one["reliable"] for one in part], [one["bound"] for one in part], [1] * len(part),
            [not one["reliable"] for one in part],
        )]  # fmt: skip
        table.add_row(name, *map(str, counts))
    console.print(table)
    console.print("[dim]bound: pairs that some weights of the class tell apart (enfa power).[/]")
