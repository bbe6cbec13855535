"""index.html and report.md from the results of a report."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from enfa.report.measure.store import read_section
from enfa.report.pages.how_it_works import how_it_works_data, how_it_works_html
from enfa.report.pages.html import page_html
from enfa.report.pages.markdown import write_markdown
from enfa.report.settings import SECTIONS
from enfa.report.show.accuracy import show_accuracy
from enfa.report.show.exactness import show_exactness
from enfa.report.show.page import Section
from enfa.report.show.storage import show_breakdown, show_storage
from enfa.report.show.time import show_time

__all__ = ["write_pages"]

TITLE = "Subgraph GNNs, cheap and exact: the evaluation, measured again"
LEAD = (
    "ENFA makes subgraph GNNs cheap without changing a single output. This page repeats the paper's measurements of "
    "storage, time, exactness and accuracy, and shows how far computing every distinct row only once goes beyond them."
)
SHOW: dict[str, Callable[[dict[str, Any]], Section]] = {
    "exactness": show_exactness,
    "time": show_time,
    "storage": show_storage,
    "breakdown": show_breakdown,
    "accuracy": show_accuracy,
}


def write_pages(out: Path) -> bool:
    """index.html and report.md from whatever results are there. Returns whether everything that can fail passed."""
    stored = {}
    for name in SECTIONS:
        path = out / "results" / f"{name}.json"
        if path.exists():
            stored[name] = read_section(path)
    # as SHOW has them: that they agree comes first
    sections = [show(stored[name]) for name, show in SHOW.items() if name in stored and stored[name]["results"]]
    how = Section(
        "how-it-works",
        "How it works",
        [
            "A subgraph GNN runs on a bag of edited copies of a graph. Here the graph is a molecule, and every circle is "
            "one row: the embedding of one atom in one copy. Equal numbers are equal rows."
        ],
        html="<p>Step through the layers.</p>" + how_it_works_html(how_it_works_data()),
    )
    sections.insert(0, how)
    (out / "index.html").write_text(page_html(TITLE, LEAD, sections, _footer(stored)))
    write_markdown(out / "report.md", TITLE, LEAD, sections, _footer(stored))
    return all(section.ok is not False for section in sections)


def _footer(stored: dict[str, Any]) -> str:
    """Which sections were measured at which scale and on what; accuracy is only read."""
    measured: dict[str, dict[str, list[str]]] = {}
    for name, section in stored.items():
        if name != "accuracy":
            machine = ", ".join(f"{key} {value}" for key, value in section["machine"].items())
            measured.setdefault(machine, {}).setdefault(section["settings"]["scale"], []).append(name)
    listed = []
    for machine, scales in measured.items():
        parts = [f"{', '.join(names)} at {scale} scale" for scale, names in scales.items()]
        listed.append(f"{'; '.join(parts)}: {machine}.")
    return " ".join(["Written by enfa reproduce.", *(["Measured on:", *listed] if listed else [])])
