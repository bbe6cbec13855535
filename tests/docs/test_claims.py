"""Every number that README and docs claim has a file that holds it; benchmarks/claims.py says what counts as one."""

from __future__ import annotations

import importlib
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture()
def benchmarks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Benchmarks can be imported; what they bring is forgotten."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield
    for name in [n for n in sys.modules if n.split(".")[0] in ("claims", "claim_parts", "scale_orders", "common")]:
        del sys.modules[name]


@pytest.fixture()
def claims(benchmarks: None) -> ModuleType:
    return importlib.import_module("claims")


def test_every_number_has_its_file(claims: ModuleType) -> None:
    assert claims.faults() == []


def test_the_page_is_that_of_the_table(claims: ModuleType) -> None:
    """But for dates and commits, which git knows."""

    def without_dates(text: str) -> str:
        return re.sub(r"\| [^|]*\|$", "|", text, flags=re.MULTILINE)

    page = (ROOT / "docs" / "claims.md").read_text()
    known = dict.fromkeys((f for e in claims.MADE for f in e.files), "a date") | {e.file: "a date" for e in claims.SAID}
    assert without_dates(claims.page(known)) == without_dates(page), "run python benchmarks/claims.py"


@pytest.mark.parametrize(
    "text",
    ["It is 3.7× faster.", "took 12 s", "| a | 17 |", "0.83", "off by 2e-9", "eight minutes", "needs 3 GiB", "half, 52%"],
)
def test_a_number_without_an_entry_is_found(claims: ModuleType, text: str) -> None:
    assert claims.unclaimed("docs/own_graphs.md", f"{text}\n")


@pytest.mark.parametrize(
    "text", ["Python 3.10 or later; PyTorch 2.6 or later", "`lr=0.01`", "    x = 0.5", "five seeds", "(arXiv 2310.04190)"]
)
def test_versions_settings_and_code_are_no_claims(claims: ModuleType, text: str) -> None:
    assert not claims.unclaimed("docs/own_graphs.md", f"{text}\n")


def test_a_number_that_its_file_does_not_hold_is_found(claims: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    said = next(e for e in claims.SAID if e.page == "docs/policies.md")
    wrong = type(said)(said.page, said.says, said.command, said.file, lambda found: ["9.9"] * 9)
    monkeypatch.setattr(claims, "SAID", [wrong])
    assert any("Expected “on the first 1,000 graphs of PROTEINS 9.9 million" in fault for fault in claims.faults())
    gone = type(said)(said.page, said.says, said.command, "results/cpu/none.json", said.numbers)
    monkeypatch.setattr(claims, "SAID", [gone])
    assert any("results/cpu/none.json" in fault and "is not there" in fault for fault in claims.faults())


def test_the_table_of_accuracies_is_that_of_the_result_files() -> None:
    table = pytest.importorskip("enfa.training.results.table")
    page = (ROOT / "docs" / "results.md").read_text()
    assert table.markdown(table.read_results(ROOT / "results")) == page, "run enfa table --out docs/results.md"


def test_the_tables_of_shards_are_those_of_the_result_files(benchmarks: None) -> None:
    page = (ROOT / "docs" / "scale.md").read_text()
    assert importlib.import_module("scale_orders").with_figures(page) == page, "run python benchmarks/scale_orders.py --page"


@pytest.mark.parametrize("report", ["report", "report-gpu"])
def test_reports_say_what_their_results_do(report: str) -> None:
    write = importlib.import_module("enfa.report.pages.write")
    text = (ROOT / "docs" / report / "report.md").read_text()
    seen = 0
    for name, show in write.SHOW.items():
        section = show(json.loads((ROOT / "docs" / report / "results" / f"{name}.json").read_text()))
        for sentence in [*section.sentences, *(f"- **{h.value}** {h.what}" for h in section.headlines)]:
            assert sentence in text, f"enfa reproduce writes {report} again"
            seen += 1
    assert seen > 10
