"""``enfa inspect``: what the bags of a dataset cost, and what is shared, before any training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from enfa.cli.choices import PolicyName, Root, check_picture, dataset_of, policy_of
from enfa.graphs.numbers import how_many
from enfa.report.program import program_for
from enfa.report.studies.inspection import inspect_bags
from enfa.report.studies.sharding import inspect_shards

__all__ = ["inspect"]


def inspect(
    dataset: Annotated[str, typer.Argument(help="A dataset's name, or the path of an .npz file.")],
    policy: PolicyName = "node_marking",
    layers: Annotated[int, typer.Option(min=1, help="Message-passing layers.")] = 4,
    batch_size: Annotated[int, typer.Option(min=1, help="Graphs in a batch, for the expected speed-up.")] = 128,
    graph: Annotated[int | None, typer.Option(help="Only this graph; --plot then draws it with its bag.")] = None,
    root: Root = Path("data"),
    shards: Annotated[bool, typer.Option("--shards", help="And what sharing is lost in 1 to 64 shards.")] = False,
    memory: Annotated[str, typer.Option(help="For shards in training, to say which size is a good one.")] = "2 GiB",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
    plot: Annotated[Path | None, typer.Option(help="Draw rows per layer into this file (.png, .pdf, .svg).")] = None,
) -> None:
    """What the bags cost and what is shared: rows per layer, bytes on disk, expected speed-up."""
    rule, waiting = policy_of(policy), Console(stderr=True)  # so that --json can be piped
    check_picture(plot)
    with waiting.status(f"reading {dataset}"):
        data = dataset_of(dataset, root)
    graphs, title = data.compilable, data.name
    if graph is not None:
        if not 0 <= graph < len(graphs):
            raise ValueError(f"{data.name} has graphs 0 to {len(graphs) - 1}, got graph {graph}")
        graphs, title = [graphs[graph]], f"{data.name}, graph {graph}"
    with waiting.status(f"{title}: compiling"):
        found = {"dataset": data.name, "graph": graph, **inspect_bags(graphs, rule, layers, batch_size)}
        if shards:
            found["shards"] = inspect_shards(graphs, rule, layers, batch_size, memory)
    title = f"{title}, {policy.replace('_', ' ').replace('-', ' ')}, {layers} layers"
    if as_json:
        typer.echo(json.dumps(found, indent=1))
    else:
        _show(found, title)
        if shards:
            _show_shards(found["shards"], found["speedup"]["batch_size"])
    if plot is not None:
        from enfa.report.picture import draw_sharing
        from enfa.report.pictures.rows import draw_rows

        if graph is None:
            figure = draw_rows(found, title)
        else:
            figure = draw_sharing(graphs[0], rule, program_for(graphs, rule, layers), title=title)
        figure.savefig(plot)
        waiting.print(f"Wrote {plot}.")


def _show(found: dict[str, Any], title: str) -> None:
    console = Console()
    console.print(
        f"[bold]{title}[/]\nGraphs {found['graphs']:,}, nodes {found['nodes']:,}, directed edges {found['edges']:,}, "
        f"subgraphs {found['subgraphs']:,}."
    )
    table = Table(title="Rows", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("layer", "conventional", "within hops", "affected", "distinct", "fewer by"):
        table.add_column(column, justify="right")
    keys = ("conventional", "rows_within_hops", "affected", "distinct")
    for i, (whole, *others) in enumerate(zip(*(found[key] for key in keys)), 1):
        table.add_row(str(i), *(f"{value:,}" for value in (whole, *others)), f"{whole / max(others[-1], 1):,.1f}×")
    sums = [sum(found[key]) for key in keys]
    table.add_section()
    table.add_row("all", *(f"{value:,}" for value in sums), f"{found['sharing']:,.1f}×")
    console.print(table)
    size, speedup = found["bytes"], found["speedup"]
    costs = Table(title="Cost", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("plan", "MB on disk", "saved", "expected speed-up"):
        costs.add_column(column, justify="left" if column == "plan" else "right")
    for kind, gain in (("conventional", 1.0), ("ego", speedup["ego"]), ("distinct", speedup["distinct"])):
        saved = 100 * (1 - size[kind] / max(size["conventional"], 1))
        costs.add_row(kind, f"{size[kind] / 1e6:,.2f}", f"{saved:.1f}%", f"{gain:,.1f}×")
    console.print(costs)
    graphs = f"{speedup['batch_size']} graph" + ("s" if speedup["batch_size"] > 1 else "")
    console.print(
        "[dim]within hops: nodes at most i hops from an edit after layer i, where the paper computes. affected: those "
        "that really differ from the unedited graph. distinct: what is left when equal rows are one.\n"
        f"Expected speed-up: rows in the convs of random batches of {graphs}, conventional to the plan's. It is what a "
        "training step gains where matrix products take the time; small steps gain less. MB: layout of enfa storage.[/]"
    )


def _show_shards(found: dict[str, Any], batch_size: int) -> None:
    console = Console()
    table = Table(title="Shards", title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for column in ("shards", "graphs in each", "rows", "more by", f"rows of a batch of {batch_size}", "more by"):
        table.add_column(column, justify="right")
    for entry in found["sizes"]:
        table.add_row(
            str(entry["shards"]), f"{entry['graphs']:,}", f"{entry['rows']:,}", f"{100 * entry['more_rows']:.1f}%",
            f"{entry['batch_rows']:,.0f}", f"{100 * entry['more_batch_rows']:.1f}%",
        )  # fmt: skip
    console.print(table)
    size, memory = found["shard_size"], f"{found['memory'] / 2**30:.3g} GiB"
    if size >= found["sizes"][0]["graphs"]:  # of the dataset
        choice = f"one shard of all {how_many(size, 'graph')} is enough. It is open as a whole in training within {memory}"
    else:
        choice = f"shards of {how_many(size, 'graph')}. Four such shards are open together in training within {memory}"
    console.print(
        f"A good choice: {choice}; each graph takes {found['bytes_per_graph'] / 1e3:,.1f} kB in memory on average.\n"
        "[dim]Rows are shared within a shard. Fewer, larger shards share more; a batch has graphs of the shards that are open "
        "together.[/]"
    )
