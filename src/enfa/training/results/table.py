"""Results as a table: for the terminal, and for docs/results.md."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from enfa.training.metrics import labelled
from enfa.training.results.collect import Results

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["markdown", "read_results", "terminal_table"]

_HEAD = ("config", "metric", "paper", "ours", "validation", "runs", "notes")


def read_results(folder: Path) -> list[Results]:
    """All result files of a folder, by name. One that is damaged is refused: a table without it would look complete."""
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder of results {folder}")
    return [Results.load(path) for path in sorted(folder.glob("*.json")) if _has_runs(path)]


def _has_runs(path: Path) -> bool:
    """Not so files of other commands (storage.json, say)."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # of JSON, or of UTF-8
        raise ValueError(f"{path} is damaged: Expected JSON, got {error}; put it back, or take it out of the folder") from error
    return isinstance(values, dict) and "runs" in values


class _Line(NamedTuple):
    """One config's results, in words."""

    config: str
    metric: str
    paper: str
    ours: str
    runs: str
    epoch: str
    notes: tuple[str, ...]
    validation: str = ""

    @classmethod
    def of(cls, results: Results) -> _Line:
        name, paper, summary = results.config.name, results.config.paper or "", results.summary()
        if summary is None:
            return cls(name, "", paper, "no run yet", "0", "", ())
        epoch = "" if summary.epoch is None else str(summary.epoch)
        of, valid = results.records[0], summary.validation
        shown = "" if valid is None else f"{valid:.{1 if summary.percent else 4}f}"
        return cls(name, labelled(of.metric, of.std), paper, str(summary), str(summary.runs), epoch, summary.notes, shown)

    def cells(self) -> tuple[str, ...]:
        """With the epoch among the notes, and what was validated."""
        notes = (f"epoch {self.epoch}", *self.notes) if self.epoch else self.notes
        return (*self[:4], self.validation, self.runs, "; ".join(notes))


def terminal_table(results: Sequence[Results]) -> Table:
    """For 80 columns: what there is to say about a config stands below, and once if it holds for several."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    lines = [_Line.of(each) for each in results]
    notes = list(dict.fromkeys("; ".join(line.notes) for line in lines if line.notes))
    caption = ["Mean and standard deviation over runs, shares in percent."]
    if any(line.epoch for line in lines):
        caption.append("Epoch: the one whose mean over the runs is best.")
    caption += [f"[{number}] {note}" for number, note in enumerate(notes, 1)]
    table = Table(
        box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False, caption=Text("\n".join(caption)), caption_justify="left"
    )  # fmt: skip
    table.add_column("config", overflow="fold", min_width=14)  # a name that is cut off could be another's
    table.add_column("metric")
    for name in ("paper", "ours", "runs", "epoch"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("note", no_wrap=True)
    for line in lines:
        number = f"[{notes.index('; '.join(line.notes)) + 1}]" if line.notes else ""
        table.add_row(*(Text(cell) for cell in (*line[:6], number)))
    return table


_INTRO = """\
# Results

Generated from the files under `results/` by `enfa table`; edit those, not this. Numbers are mean ± standard deviation over
runs, as they came out: accuracy, ROC-AUC and average precision in percent, errors as they are. The column *paper* is what the
ENFA paper reports for the same setting; of ZINC and counting, the paper of the model.

Names are dataset, model (`ds`, `dss`, `sun`, `sswl`; `esan`: DS-GNN wired as in its authors' code) and policy: `nm` node
marking, `nmd` the same by distances, `nd` node deletion, `ed` edge deletion, `ego` ego nets; behind them a conv where it is not
GIN or GINE, or a setting that differs from the config's.

Protocol. PROTEINS, EXP and CEXP: ten stratified folds, one run for each and for every seed; the test fold is the
validation fold, and the number is that of the one epoch (in the notes) whose mean over the folds is best. That is the practice
of GIN and ESAN, which the paper follows; it chooses the epoch on the test data, so it flatters. `validation=next` chooses on
another fold. Datasets with an official split: the test score of the epoch with the best validation score, whose mean is the
column *validation*. By it a config's settings are chosen among those tried, which stand here under their own names (`dropout5`:
0.5; `lr4`: a rate of 0.0001; `independent`: a mask for every copy of a row, on the full plan), also where another has the
better test score.

"""


def _runs(of: Results) -> str:
    hardware = "; ".join(sorted({r.hardware for r in of.records}))
    seconds = sum(r.seconds for r in of.records) / len(of.records)
    epochs = sum(r.epochs for r in of.records) / len(of.records)
    versions = "; ".join(sorted({f"enfa {r.version}, torch {r.torch}" for r in of.records}))
    seeds = ", ".join(str(s) for s in sorted({r.seed for r in of.records}))
    c = of.config
    return f"| {c.name} | {epochs:.0f} of {c.epochs} | {c.batch_size} | {seeds} | {seconds:.0f} | {hardware} | {versions} |"


# The paper's tables: its policies with DS-GNN; of DSS-GNN, which it does not have, the first.
_PAPERS = {
    ("ds", "node_marking"): "nm", ("ds", "node_deletion"): "nd", ("ds", "edge_deletion"): "ed", ("dss", "node_marking"): "nm",
}  # fmt: skip


def _papers_tables(done: Sequence[Results]) -> list[str]:
    """Datasets by policies, of configs with their plain names; nothing where there is none."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for each in done:
        c, summary = each.config, each.summary()
        key = c.model, c.policy
        if summary is not None and key in _PAPERS and c.name == f"{c.dataset}-{c.model}-{_PAPERS[key]}":
            found.setdefault(c.dataset, {})[key] = str(summary) + (f" ({c.paper})" if c.paper else "")
    if not found:
        return []
    head = [f"{model.upper()}, {policy.replace('_', ' ')}" for model, policy in _PAPERS]
    return [
        "## By policy", "", "In brackets what the paper reports.", "",
        f"| | {' | '.join(head)} |", "|---" + "|--:" * len(head) + "|",
        *(f"| {data} | {' | '.join(of.get(key, '') for key in _PAPERS)} |" for data, of in sorted(found.items())),
        "", "## All runs", "",
    ]  # fmt: skip


def markdown(results: Sequence[Results]) -> str:
    done = [of for of in results if of.records]
    lines = _papers_tables(done)
    lines += [f"| {' | '.join(_HEAD)} |", "|---|---|--:|--:|--:|--:|---|"]
    lines += [f"| {' | '.join(_Line.of(each).cells())} |" for each in done]
    lines += ["", "Seconds are by the clock, also where runs shared a machine or a GPU: alone they take less.", ""]
    lines += ["| config | epochs, mean | batch | seed | seconds per run, mean | hardware | versions |"]
    lines += ["|---|--:|--:|--:|--:|---|---|"]
    return _INTRO + "\n".join(lines + [_runs(of) for of in done]) + "\n"
