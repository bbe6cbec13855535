"""``enfa demo``: the whole idea in half a minute, on graphs made here."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Annotated

import numpy as np
import torch
import typer
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table
from torch_geometric.data import Data

from enfa.datasets import Benchmark, load
from enfa.edits import GraphView, NodeMarking, Policy, Subgraph
from enfa.nn import DSGNN
from enfa.nn.bag import Bag, make_plan
from enfa.plan.check import KINDS
from enfa.testing import differences

__all__ = ["demo"]

LAYERS, CHANNELS = 4, 32  # four layers are the fewest that tell all ten classes apart under node marking
EXACT = 1e-10
NEXT = """\
import enfa

# yours: a list of torch_geometric Data with x and edge_index
graphs = enfa.testing.random_graphs(16, nodes=20)
model = enfa.DSGNN(3, hidden_channels=32, out_channels=2, num_layers=4)
plan = enfa.make_plan(graphs, enfa.NodeMarking(), model)
print(model(plan).shape, plan.cost())
# outputs, gradients, BatchNorm statistics: check your own model too
enfa.testing.assert_same_as_full(model, enfa.NodeMarking(), graphs)"""


class Unedited(Policy):
    """One subgraph per graph: the graph itself. A subgraph GNN on it is the plain GNN."""

    def bag(self, graph: GraphView) -> Iterable[Subgraph]:
        return [Subgraph()]


def demo(
    quick: Annotated[bool, typer.Option("--quick", help="Compare plans on 10 graphs instead of 50.")] = False,
) -> None:
    """Full, ego and distinct plans side by side, then training where a plain GNN fails. Downloads nothing."""
    began, console = time.perf_counter(), Console()
    torch.set_num_threads(1)  # on tables as small as the distinct ones threads only wait for each other
    data = load("CSL")
    for graph in data.graphs:
        graph.x = graph.x.float()  # one feature, 0.0 everywhere
    console.rule("[bold]1  Graphs that message passing cannot tell apart")
    console.print(
        f"{len(data)} circular-skip-link graphs in {data.num_outputs} classes: a ring of 41 nodes, and from "
        "every node a link some places ahead. Every node has four neighbours, so to 1-WL, and so to any "
        "plain GNN, they are all the same graph. A subgraph GNN marks one node at a time: 41 subgraphs.\n"
    )
    console.rule("[bold]2  One model, three plans, one answer")
    each = 1 if quick else 5
    chosen = np.concatenate([np.flatnonzero(data.labels == c)[:each] for c in range(data.num_outputs)])
    same = _compare(console, [data.graphs[i] for i in chosen], data.num_outputs, repeats=3 if quick else 7)
    console.rule("[bold]3  Training on the distinct plan")
    accuracy = _train(console, data)
    console.print(
        f"On held-out graphs: subgraph GNN [bold green]{accuracy['subgraph GNN']:.0%}[/], plain GNN "
        f"[bold]{accuracy['plain GNN']:.0%}[/], chance {1 / data.num_outputs:.0%}.\n"
    )
    console.rule("[bold]What to do next")
    console.print(Padding(Syntax(NEXT, "python", background_color="default"), (1, 2)))
    console.print("[bold]enfa --help[/] lists the commands. README.md has figures on real data, and limits.")
    console.print(f"[dim]{time.perf_counter() - began:.0f} s[/]")
    if not same or accuracy["subgraph GNN"] < 1.0:
        raise typer.Exit(1)


def _model(classes: int) -> DSGNN:
    torch.manual_seed(1)
    return DSGNN(1, CHANNELS, classes, LAYERS, conv="graphconv")


def _step_ms(model: DSGNN, plan: Bag, target: torch.Tensor, repeats: int) -> float:
    """Median of one training step: forward, backward, Adam."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(model(plan), target).backward()
        optimiser.step()
        times.append(time.perf_counter() - start)
    return 1e3 * float(np.median(times[1:]))  # the first step also fills the plan's caches


def _compare(console: Console, graphs: Sequence[Data], classes: int, repeats: int) -> bool:
    """Print the table; say whether all plans agree."""
    console.print(
        "[bold]full[/] computes every row (node v in subgraph j) in every layer, the conventional way. "
        "[bold]ego[/] is ENFA as published: message passing only near the marked node. "
        "[bold]distinct[/] computes equal rows once."
    )
    model, policy = _model(classes), NodeMarking()
    worst: dict[tuple[str, str], float] = {}
    with console.status("comparing outputs, gradients and BatchNorm statistics"):
        for d in differences(model, policy, graphs):
            key = d.kind, d.what.split(" ")[0]
            worst[key] = max(worst.get(key, 0.0), d.relative)
    table = Table()
    table.add_column("plan", style="bold")
    for name in ("rows per layer", "ms/step", "MB", "outputs", "gradients", "BatchNorm"):
        table.add_column(name, justify="right")
    ms = {}
    for kind in KINDS:
        with console.status(f"timing {kind}"):
            plan = make_plan(graphs, policy, model, kind)
            ms[kind] = _step_ms(model, plan, torch.cat([graph.y for graph in graphs]), repeats)
        cost = plan.cost()
        rows = f"{LAYERS} × {cost.rows[0]:,}" if len(set(cost.rows)) == 1 else "  ".join(map(str, cost.rows))
        gaps = ["–"] * 3
        if kind != "full":
            gaps = [f"{worst[kind, what]:.0e}" for what in ("output", "gradient", "buffer")]
        table.add_row(kind, rows, f"{ms[kind]:,.1f}", f"{cost.bytes / 1e6:,.2f}", *gaps)
    console.print(table)
    console.print(
        f"[dim]{len(graphs)} graphs, {LAYERS} layers of {CHANNELS} channels with BatchNorm, one thread. "
        "ms: forward, backward, Adam; median. MB: arrays of the plan. "
        "Last three: largest difference from full, relative, in float64.[/]"
    )
    same = all(gap <= EXACT for gap in worst.values())
    verdict = "[bold green]The same answer" if same else f"[bold red]Answers differ by more than {EXACT:g}"
    console.print(
        f"{verdict}, {ms['full'] / ms['distinct']:,.0f} times faster.[/] In these graphs every node looks "
        "like every other, so nearly all rows are shared, and ego nets soon reach nearly everywhere and save far less. "
        "Real graphs share less: see README.md.\n"
    )
    return same


def _train(console: Console, data: Benchmark, epochs: int = 200) -> dict[str, float]:
    """Held-out accuracy by model."""
    split, accuracy = data.split(fold=0), {}
    texts = [TextColumn(f"{{task.{what}}}") for what in ("description", "fields[state]")]
    with Progress(texts[0], BarColumn(), texts[1], TimeElapsedColumn(), console=console) as progress:
        for name, policy in (("plain GNN", Unedited()), ("subgraph GNN", NodeMarking())):
            model, plans, labels = _model(data.num_outputs), {}, {}
            for part in ("train", "test"):
                plans[part] = make_plan([data.graphs[i] for i in split[part]], policy, model)
                labels[part] = torch.from_numpy(data.labels[split[part]])
            optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
            # running statistics settle as the steps get small
            schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, epochs)
            bar = progress.add_task(name, total=epochs, state="")
            for _ in range(epochs):
                model.train()
                optimiser.zero_grad()
                loss = torch.nn.functional.cross_entropy(model(plans["train"]), labels["train"])
                loss.backward()
                optimiser.step()
                schedule.step()
                model.eval()
                with torch.no_grad():
                    right = model(plans["test"]).argmax(1) == labels["test"]
                accuracy[name] = float(right.float().mean())
                state = f"loss {loss.item():.3f}  held-out {accuracy[name]:4.0%}"
                progress.update(bar, advance=1, state=state)
    return accuracy
