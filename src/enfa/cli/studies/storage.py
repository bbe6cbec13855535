"""``enfa storage``: the paper's Table 1 and its storage figures, counted anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from enfa.batch.file.header import FORMAT
from enfa.cli.choices import Root, check_picture, dataset_of, layers_of, policy_of, words
from enfa.graphs.names import unknown
from enfa.report.bags.storage import LAYOUTS
from enfa.report.machine import machine
from enfa.report.studies.storage import PARTS, measure_storage
from enfa.training.disk import write_json

__all__ = ["storage"]

DATASETS = "PROTEINS,EXP,CEXP,ogbg-moltox21,ogbg-molhiv,peptides-func"
POLICIES = "node_marking,node_deletion,edge_deletion"


def storage(
    datasets: Annotated[str, typer.Option(help="Names, or paths of .npz files, with commas between.")] = DATASETS,
    policies: Annotated[str, typer.Option(help="Names with commas between; parameters as in ego_nets:hops=2.")] = POLICIES,
    layers: Annotated[str, typer.Option(help="Numbers of layers, such as 4 or 2-5.")] = "2-5",
    layout: Annotated[
        str, typer.Option(help="paper: edges per subgraph, features once. esan: all that ESAN's code writes.")
    ] = "paper",
    root: Root = Path("data"),
    out: Annotated[Path, typer.Option(help="Result file. What it has already is not counted again.")] = Path(
        "results/storage.json"
    ),
    fresh: Annotated[bool, typer.Option("--fresh", help="Count everything again.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw the figures into this file (.png, .pdf, .svg).")] = None,
) -> None:
    """Bytes of the bags on disk: conventional, as ego nets (the paper), and as distinct rows. MB are 10^6 bytes."""
    names, chosen, counts = words(datasets), words(policies), layers_of(layers)
    check_picture(plot)
    if layout not in LAYOUTS:
        raise unknown("the layout", layout, LAYOUTS)
    if not names or not chosen:
        raise ValueError("Expected at least one dataset and one policy, got none")
    rules = {name.replace("-", "_"): policy_of(name) for name in chosen}
    console = Console(stderr=True)  # so that --json can be piped
    done = {} if fresh else _read(out, layout, counts)
    for name in names:
        missing = [rule for rule in rules if (_title(name), rule) not in done]
        data = None
        for rule in missing:
            if data is None:
                with console.status(f"reading {name}"):
                    data = dataset_of(name, root)
            with console.status(f"{data.name}, {rule.replace('_', ' ')}: counting and compiling"):
                entries = measure_storage(data.compilable, rules[rule], counts, layout)
            done[data.name, rule] = {"dataset": data.name, "policy": rule, "graphs": len(data), "entries": entries}
            _write(out, layout, counts, done)  # after each, so that nothing is lost
            console.print(f"[dim]{data.name}, {rule.replace('_', ' ')}: counted[/]")
    results = [done[_title(name), rule] for name in names for rule in rules]
    if as_json:
        typer.echo(json.dumps({"layout": layout, "machine": machine(), "results": results}, indent=1))
    else:
        _show(results, layout, counts)
    if plot is not None:
        from enfa.report.studies.storage_plot import draw_storage

        draw_storage(results, counts, layout).savefig(plot)
        console.print(f"Wrote {plot}.")


def _title(name: str) -> str:
    """What a dataset is called once it is read."""
    return Path(name).stem if name.endswith(".npz") else name


def _head(layout: str, counts: list[int]) -> dict[str, Any]:
    return {"layout": layout, "layers": counts, "format": FORMAT, "machine": machine()}


def _read(path: Path, layout: str, counts: list[int]) -> dict[tuple[str, str], dict[str, Any]]:
    """Earlier results, if they are of the same layout, layers, machine and versions."""
    if not path.exists():
        return {}
    try:
        found = json.loads(path.read_text())
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is not a result file ({error}); choose another with --out") from error
    head = _head(layout, counts)
    if {key: found.get(key) for key in head} != head:
        return {}
    return {(one["dataset"], one["policy"]): one for one in found["results"]}


def _write(path: Path, layout: str, counts: list[int], done: dict[tuple[str, str], dict[str, Any]]) -> None:
    write_json(path, {**_head(layout, counts), "results": list(done.values())})


def _find(result: dict[str, Any], kind: str, count: int | None = None) -> dict[str, Any]:
    return next(e for e in result["entries"] if e["kind"] == kind and e.get("layers") == count)


def _table(title: str, words: tuple[str, ...], figures: tuple[str, ...]) -> Table:
    table = Table(title=title, box=SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in words:
        table.add_column(column, no_wrap=True)
    for column in figures:
        table.add_column(column, justify="right")
    return table


def _show(results: list[dict[str, Any]], layout: str, counts: list[int]) -> None:
    console = Console()
    title = f"MB on disk, and percent saved against the conventional bags (layout: {layout})"
    table = _table(title, ("dataset, policy", "plan"), ("bags", *(f"L = {count}" for count in counts)))
    for result in results:
        whole = _find(result, "conventional")["bytes"]
        for kind in ("ego", "distinct"):
            found = [_find(result, kind, count) for count in counts]
            cells = [f"{e['bytes'] / 1e6:,.1f} [green]{e['saved_percent']:.1f}%[/]" for e in found]
            first = result["dataset"] if kind == "ego" else result["policy"].replace("_", " ")
            size = f"{whole / 1e6:,.1f}" if kind == "ego" else ""
            table.add_row(first, kind, size, *cells, end_section=kind == "distinct")
    console.print(table)
    parts = _table(f"What the bytes are, in percent (L = {counts[-1]})", ("dataset, policy", "plan"), ("MB", *PARTS))
    for result in results:
        firsts = result["dataset"], result["policy"].replace("_", " "), ""
        for first, kind in zip(firsts, ("conventional", "ego", "distinct")):
            e = _find(result, kind, None if kind == "conventional" else counts[-1])
            shares = [f"{100 * e['parts'][part] / e['bytes']:.1f}" for part in PARTS]
            parts.add_row(first, kind, f"{e['bytes'] / 1e6:,.1f}", *shares, end_section=kind == "distinct")
    console.print(parts)
    console.print(
        "[dim]edges: edge indices and attributes of the subgraphs, or the keys of the distinct rows; pairs: pivot "
        "hops, index vectors, or what the readout needs; rest: original edges, and in real files labels and headers.[/]"
    )
