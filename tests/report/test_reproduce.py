import json
import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import enfa.testing.same
from enfa.plan.table import Plan
from enfa.report import reproduce
from enfa.report.machine import machine
from enfa.report.measure.memory import estimate
from enfa.report.measure.store import Store
from enfa.report.measure.time import cases
from enfa.report.pages.write import write_pages
from enfa.report.settings import FULL, SECTIONS, TINY

SMALL = TINY.to(datasets=("EXP",))


class Reader(HTMLParser):
    """What the tests need of a page: ids, classes, and whether tags match."""

    VOID = ("meta", "link", "br")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.outside: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        for key, value in attrs:
            if key == "id":
                self.ids.append(value or "")
            if key in ("src", "href", "xlink:href") and not (value or "").startswith(("#", "data:")):
                self.outside.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_whole_and_needs_nothing_from_outside(whole_report: Path) -> None:
    page = Reader((whole_report / "index.html").read_text())
    assert page.open == []
    assert page.outside == []
    assert len(page.ids) == len(set(page.ids)), "an id stands twice"
    for name in (*SECTIONS, "how-it-works"):
        assert name in page.ids


def test_markdown_names_pictures_that_exist(whole_report: Path) -> None:
    text = (whole_report / "report.md").read_text()
    pictures = [line.partition("(")[2].rstrip(")") for line in text.splitlines() if line.startswith("![")]
    assert len(pictures) == 6
    for name in pictures:
        assert (whole_report / name).read_bytes().startswith(b"\x89PNG")


def test_markdown_is_short_and_says_where_the_rest_is(whole_report: Path) -> None:
    """What the page folds away is in its JSON files; the published report is a tenth of its page."""
    text = (whole_report / "report.md").read_text()
    assert "<details>" not in text
    named = set(re.findall(r"\]\((results/\w+\.json)\)", text))
    assert named == {f"results/{name}.json" for name in SECTIONS if name != "accuracy"}
    assert all((whole_report / name).is_file() for name in named)
    published = Path(__file__).resolve().parents[2] / "docs"
    for name in ("report", "report-gpu"):
        assert len((published / name / "report.md").read_text().split()) < 2_000


def test_every_figure_says_what_it_was_measured_on(whole_report: Path) -> None:
    machine = json.loads((whole_report / "results" / "time.json").read_text())["machine"]
    lines = (whole_report / "report.md").read_text().splitlines()
    notes = [lines[at + 2] for at, line in enumerate(lines) if line.startswith("![")]
    assert len(notes) == 6
    for note in notes:
        assert machine["cpu"] in note and machine["torch"] in note and "1 thread" in note


def test_all_cases_of_the_issue_are_timed() -> None:
    found = set(cases(FULL))
    assert len(found) == 6 * 3 * 4 * (1 + 1 + 3)
    both = {(c.dataset, c.conv) for c in found}
    assert ("CEXP", "graphconv") in both and ("peptides-func", "gcn") in both and ("EXP", "gcn") not in both


def test_continues_where_it_stopped(run: Callable[..., Path], measured: Path) -> None:
    path = measured / "results" / "exactness.json"
    before = json.loads(path.read_text())
    lost = next(iter(before["results"]))
    kept = {k: v for k, v in before["results"].items() if k != lost}
    for value in kept.values():
        value["nodes"] = -1  # shows that it was not measured again
    path.write_text(json.dumps({**before, "results": kept}))
    run(("exactness",), settings=SMALL)
    after = json.loads(path.read_text())["results"]
    assert after[lost]["nodes"] == before["results"][lost]["nodes"] > 0
    assert all(after[key]["nodes"] == -1 for key in kept)


def test_results_of_other_settings_are_refused(run: Callable[..., Path], measured: Path) -> None:
    one = SMALL.to(exact_steps=1)
    with pytest.raises(ValueError, match=r"exactness.json was measured with exact_steps = 2, this is 1; choose another"):
        run(("exactness",), settings=one)
    before = (measured / "results" / "exactness.json").read_text()
    run(("exactness",), settings=SMALL.to(batch=5))  # does not matter here
    assert (measured / "results" / "exactness.json").read_text() == before
    run(("exactness",), settings=one, fresh=True)
    assert json.loads((measured / "results" / "exactness.json").read_text())["settings"]["exact_steps"] == 1


def test_results_of_another_machine_are_refused_where_it_matters(whole_report: Path) -> None:
    elsewhere = Store(whole_report / "results", TINY, {**machine(), "cpu": "another", "torch": "1.0"})
    for name in ("exactness", "time"):
        with pytest.raises(ValueError, match=f"{name}.json was measured with cpu = .*, this is 'another'; choose another"):
            elsewhere.section(name)
    for name in ("storage", "breakdown", "accuracy"):
        assert elsewhere.section(name)
    other_codec = Store(whole_report / "results", TINY, {**machine(), "zstandard": "0.1"})
    with pytest.raises(ValueError, match=r"storage.json was measured with zstandard = .*, this is '0.1'"):
        other_codec.section("storage")


def test_a_broken_plan_turns_the_page_red(run: Callable[..., Path], measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert 'class="failed"' not in (measured / "index.html").read_text()
    made = enfa.testing.same.step_plan_of

    def broken(*args: object) -> Plan:
        plan = made(*args)  # type: ignore[arg-type]
        if plan.kind == "distinct":  # one message of one row comes from the wrong row
            number = max(n for n, table in enumerate(plan.tables) if table.links is not None)
            links, read = plan.tables[number].links, plan.program.steps[number].reads[0]
            first = links.in_ptr[int((links.in_ptr.diff() > 0).nonzero()[0])]
            links.in_row[first] = (links.in_row[first] + 1) % plan.num_rows(read)
        return plan

    monkeypatch.setattr(enfa.testing.same, "step_plan_of", broken)
    bad = run(("exactness",), settings=SMALL, fresh=True)
    assert not write_pages(bad)
    page = (bad / "index.html").read_text()
    assert '<section id="exactness" class="failed">' in page
    assert "NOT EXACT" in page and 'class="tile bad"' in page and "<td class=fail>✗" in page
    assert "NOT EXACT" in (bad / "report.md").read_text()


@pytest.mark.parametrize("fits", [(), ("distinct",)])
def test_bags_that_do_not_fit_are_named_in_figure_and_table(
    run: Callable[..., Path], whole_report: Path, fits: tuple[str, ...]
) -> None:
    """Once no plan fits, once all but the conventional one's rows do."""
    before = json.loads((whole_report / "results" / "time.json").read_text())["results"]
    key, found = max(before.items(), key=lambda item: _rows(item[1], "full") - _rows(item[1], "distinct"))
    layers = int(key.split(" | ")[4])
    rows = (_rows(found, "full") + _rows(found, "distinct")) // 2 if fits else 1
    settings = SMALL.to(datasets=(key.split(" | ")[0],), memory_gb=estimate(rows, 8, layers, False) / 1e9)
    out = run(("time",), settings=settings)
    page = (out / "index.html").read_text()
    assert ">does not fit</text>" in page and '<td class="word">does not fit</td>' in page
    results = json.loads((out / "results" / "time.json").read_text())["results"]
    assert tuple(kind for kind in ("full", "distinct") if "ms" in results[key]["plans"][kind]) == fits


def _rows(result: dict[str, Any], kind: str) -> int:
    return max(result["plans"][kind]["rows"])


def test_unknown_section() -> None:
    with pytest.raises(ValueError, match=r"got 'storrage' \(did you mean 'storage'\?\)"):
        reproduce.check_sections(["storrage"])
    assert reproduce.check_sections([]) == SECTIONS
