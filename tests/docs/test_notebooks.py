"""The notebooks are those of the pages, and run from top to bottom."""

import contextlib
import difflib
import io
import json
import re
from pathlib import Path

import pytest
import torch
from from_file import from_file

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
make = from_file(FOLDER / "make.py")


@pytest.mark.parametrize("name", make.PAGES)
def test_is_the_page(name: str) -> None:
    page = (ROOT / "docs" / f"{name}.md").read_text()
    assert (FOLDER / f"{name}.ipynb").read_text() == make.notebook(page), "run python docs/notebooks/make.py"


@pytest.mark.parametrize("name", make.PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for cell in json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]:
        for target in re.findall(
            r"\]\((?!http|#)([^)#\s]+)", "".join(cell["source"]) if cell["cell_type"] == "markdown" else ""
        ):
            assert (FOLDER / target).exists() or target.startswith("../api/"), target  # the reference is made with the site


def _run(name: str, monkeypatch: pytest.MonkeyPatch, folder: Path) -> list[str]:
    """What each code cell printed."""
    monkeypatch.chdir(folder)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    printed = []
    for number, cell in enumerate(json.loads((FOLDER / f"{name}.ipynb").read_text())["cells"]):
        if cell["cell_type"] == "code":
            with contextlib.redirect_stdout(io.StringIO()) as out:
                exec(compile("".join(cell["source"]), f"{name}.ipynb, cell {number}", "exec"), names)
            printed.append(out.getvalue())
    return printed


@pytest.mark.parametrize("threads", [1, 2])
def test_start(threads: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """However many cores a reader has: sums are added up in another order."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert "300 of 300 right" in _run("start", monkeypatch, tmp_path)[-1]
    finally:
        torch.set_num_threads(before)


def test_porting(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The ported script is as good as the original, and its subgraphs see what that cannot."""
    printed = "".join(_run("porting", monkeypatch, tmp_path))
    before, after, rings = map(float, re.findall(r"accuracy ([\d.]+)", printed))
    assert before > 0.95 and abs(after - before) < 0.03 and rings == 1.0


def test_porting_changes_six_lines_and_marks_them() -> None:
    page = (ROOT / "docs" / "porting.md").read_text()
    before, after = (b.code.splitlines() for b in make.blocks(page)[1:3])
    changed = [j for tag, _, _, j1, j2 in difflib.SequenceMatcher(None, before, after).get_opcodes() if tag != "equal"
               for j in range(j1, j2)]  # fmt: skip
    assert len(before) == len(after) and len(changed) == 6
    marked = re.search(r'title="after" hl_lines="([\d ]+)"', page)
    assert marked is not None and [j + 1 for j in changed] == list(map(int, marked[1].split()))


@pytest.mark.parametrize("name", [name for name in make.PAGES if name not in ("start", "porting")])
def test_others(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert _run(name, monkeypatch, tmp_path)
