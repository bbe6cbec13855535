import importlib
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"```python\n(.*?)```", README, re.DOTALL)


def test_ten_lines_end_in_a_check() -> None:
    lines = [line for line in BLOCKS[0].splitlines() if line]
    assert len(lines) <= 10
    assert lines[-1].startswith("assert_same_as_full(") and "assert_same_as_full(model" in BLOCKS[1]


def test_blocks_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """By the script that the workflow calls where the wheel is installed and nothing else."""
    torch.set_num_threads(1)
    script = "tests/support/run_readme.py"
    assert f"{script} README.md" in (ROOT / ".github" / "workflows" / "tests.yml").read_text()
    monkeypatch.setattr(sys, "argv", [script, str(ROOT / "README.md")])
    names = runpy.run_path(str(ROOT / script), run_name="__main__")["names"]
    said = capsys.readouterr().out
    assert "rows in every layer of the conventional model" in said and "README.md run" in said
    assert tuple(names["logits"].shape) == (32, 2)
    steps = [names["optimiser"].state[p]["step"] for p in names["model"].parameters()]
    assert steps and all(step == 4 for step in steps), "the loop has learnt something"


def test_links_within_pages_lead_to_headings() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
    code = re.compile(r"```.*?```", re.DOTALL)
    found = 0
    for page in pages:
        for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", code.sub("", page.read_text())):
            headings = re.findall(r"^#+ (.*)$", code.sub("", (page.parent / (target or page.name)).read_text()), re.MULTILINE)
            names = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
            assert anchor in names, (page.name, target, anchor)
            found += 1
    assert found > 10


def test_links_lead_somewhere() -> None:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    targets = [(page, target) for page in pages for target in re.findall(r"\]\(([^)#]+)\)", page.read_text())]
    assert len({page for page, _ in targets}) > len(pages) / 2
    for page, target in targets:
        assert target.startswith("http") or (page.parent / target).exists(), (page.name, target)


def test_says_when_not_to_use_it_as_the_site_does() -> None:
    pages = [README, (ROOT / "docs" / "index.md").read_text()]
    tables = [
        re.findall(r"^\|.*", text.partition("## When not to use it\n")[2].partition("\n## ")[0], re.MULTILINE) for text in pages
    ]
    assert len(tables[0]) > 5 and tables[0] == tables[1]


def test_figures_are_those_of_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.delitem(sys.modules, "readme", raising=False)
    readme = importlib.import_module("readme")
    for name, parts in readme.PAGES.items():
        page = (ROOT / name).read_text()
        assert readme.between(page, parts(ROOT / "results")) == page, "run python benchmarks/readme.py"
    assert README.count("×**") == 4


def test_agrees_with_the_reports_tiles() -> None:
    """What it says of the report on a CPU is what the tile there says."""
    report = (ROOT / "docs" / "report" / "report.md").read_text()
    (tile,) = re.findall(r"^- \*\*(.*?)\*\* faster training step", report, re.MULTILINE)
    ((count, median),) = re.findall(r"median of (\d+) settings ([\d.]+×)", report)
    (batch,) = re.findall(r"same batch of (.*?) sampled graphs", report)
    text = " ".join((ROOT / "docs" / "figures.md").read_text().split())
    assert f"step is {tile} faster at best, and {median} in the median of {count} settings" in text
    assert f"batches of {batch} sampled graphs" in text


def test_notation_names_what_exists() -> None:
    """Every dotted name of the package in docs/notation.md can be imported."""
    names = set(re.findall(r"`(enfa(?:\.\w+)+)`", (ROOT / "docs" / "notation.md").read_text()))
    assert names
    for name in names:
        module, _, last = name.rpartition(".")
        if last[0].isupper():
            assert hasattr(importlib.import_module(module), last), name
        else:
            importlib.import_module(name)
