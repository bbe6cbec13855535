"""``enfa reproduce``: the paper's evaluation as one report."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Annotated

import torch
import typer
from rich.console import Console
from rich.markup import escape

from enfa.graphs.numbers import how_many, real
from enfa.report.data import open_source
from enfa.report.extra import need_matplotlib
from enfa.report.reproduce import check_beforehand, check_sections, measure, missing, open_store, seconds_left
from enfa.report.settings import FULL, QUICK, QUICK_CUDA, SECTIONS, Settings

__all__ = ["reproduce"]


def _settings(quick: bool, device: str, datasets: str, memory_gb: float | None) -> Settings:
    if device not in ("cpu", "cuda"):
        raise ValueError(f"Expected --device cpu or cuda, got {device!r}")
    if device == "cuda" and not torch.cuda.is_available():
        raise ValueError("Expected a CUDA device for --device cuda, but PyTorch sees none")
    sampled = QUICK_CUDA if device == "cuda" else QUICK
    settings = (sampled if quick else FULL).to(device=device, memory_gb=memory_gb)
    if datasets:
        names = tuple(name.strip() for name in datasets.split(","))
        for name in names:
            if name not in settings.datasets:
                raise ValueError(f"Expected --datasets from {', '.join(settings.datasets)}, got {name!r}")
        settings = settings.to(datasets=names)
    return settings


def _about(left: Counter[str], spent: dict[str, list[float]], settings: Settings) -> str:
    if not left:
        return ""
    seconds = seconds_left(left, spent, settings)
    if seconds >= 5400:
        return f", about {seconds / 3600:.1f} hours to go"
    return f", about {seconds / 60:.0f} minutes to go" if seconds >= 90 else f", about {seconds:.0f} s to go"


def reproduce(
    out: Annotated[Path, typer.Option(help="Folder of the report. Results in it are not measured again.")] = Path("report"),
    quick: Annotated[bool, typer.Option("--quick", help="Sample graphs: ten minutes on two cores.")] = False,
    device: Annotated[str, typer.Option(help="cpu or cuda.")] = "cpu",
    only: Annotated[str, typer.Option(help=f"Some of {','.join(SECTIONS)}; all by default.")] = "",
    data: Annotated[Path, typer.Option(envvar="ENFA_DATA", help="Folder of .npz files.")] = Path("data"),
    root: Annotated[Path | None, typer.Option(help="Raw files instead, as the official loaders lay them out.")] = None,
    datasets: Annotated[str, typer.Option(help="Some of the six, by name; all by default.")] = "",
    results: Annotated[Path, typer.Option(help="Folder of result files for the accuracy table.")] = Path("results"),
    memory_gb: Annotated[float | None, typer.Option(help="What a step may take; what is free by default.")] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Measure everything again.")] = False,
) -> None:
    """Measure storage, time, exactness and accuracy, and write index.html and report.md.

    Interrupted, it continues where it stopped. Ends with code 1 if a plan is not exact.
    """
    need_matplotlib()
    if memory_gb is not None:
        real("--memory-gb", memory_gb, above=0)
    console, began = Console(), time.perf_counter()
    sections = check_sections([name.strip() for name in only.split(",") if name.strip()])
    settings = _settings(quick, device, datasets, memory_gb)
    source = open_source(None if root else data, root)
    check_beforehand(sections, out, results)
    store = open_store(out, settings, fresh)
    left: Counter[str] = missing(sections, source, settings, store)
    spent: defaultdict[str, list[float]] = defaultdict(list)
    if "accuracy" in sections and not results.is_dir():
        lacking = f"There is no folder {results}: accuracy will have the paper's numbers alone."
        console.print(lacking, markup=False, soft_wrap=True)
    many = f": {how_many(left.total(), 'measurement')}{_about(left, spent, settings)}" if left else ""
    console.print(f"Measuring {', '.join(sections)}{many}.", soft_wrap=True)
    try:
        with console.status("starting") as status:
            before, there = time.perf_counter(), {name: set(store.section(name)) for name in sections}
            for done in measure(sections, source, settings, store, results):
                now, (name, _, key) = time.perf_counter(), done.partition(": ")
                new = not key or (name, key) in store.measured
                if key and new:
                    spent[name].append(now - before)
                if key and key not in there[name]:  # another process may have measured it
                    left[name] -= 1
                before = now
                line = f"[dim]{now - began:4.0f} s[/]  {escape(done)}[dim]{_about(+left, spent, settings)}[/]"
                status.update(line)
                if new and not console.is_terminal:  # where a status line is not shown: a line for every measurement
                    console.print(line, soft_wrap=True)
        from enfa.report.pages.write import write_pages

        ok = write_pages(out)
    except KeyboardInterrupt:
        again = " without --fresh" if fresh else ""  # with it, all would begin anew
        kept = f"Interrupted: what was measured is kept in {out}, and the same command{again} continues."
        Console(stderr=True).print(kept, markup=False, soft_wrap=True)
        raise typer.Exit(130) from None
    console.print(f"Wrote {out / 'index.html'} and {out / 'report.md'} in {time.perf_counter() - began:.0f} s.")
    if not ok:
        console.print("[bold red]A plan is not exact: see the exactness section.[/]")
        raise typer.Exit(1)
