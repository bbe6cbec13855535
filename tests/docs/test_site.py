"""The site is built without a warning: every link leads somewhere, every public name has a page."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from from_file import from_file

import enfa

pytest.importorskip("mkdocs", reason="the site needs the extra enfa[docs]")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(out)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    return out


def test_every_public_name_is_in_the_reference(site: Path) -> None:
    pages = {page: page.read_text() for page in (site / "api").glob("*.html")}
    assert len(pages) >= 8
    for name in enfa.__all__:
        if name != "testing":  # a package: its names follow
            assert sum(f'id="enfa.{name}"' in text for text in pages.values()) == 1, name
    for room in ("datasets", "testing", "training"):
        for name in importlib.import_module(f"enfa.{room}").__all__:
            assert f'id="enfa.{room}.{name}"' in pages[site / "api" / f"{room}.html"], name


def test_docstrings_read_well(site: Path) -> None:
    """No marks of another markup are left, and signatures are there."""
    for page in (site / "api").glob("*.html"):
        text = page.read_text()
        assert not re.search(r":(func|class|meth):|={6,}", text), page.name
    assert "num_layers" in (site / "api" / "models.html").read_text()


def test_tables_of_docstrings_are_tables(site: Path) -> None:
    tables = from_file(ROOT / "docs" / "griffe_tables.py")
    text = tables.with_markdown_tables("Before.\n\n== ===\na  one\n   two\nb  three\n== ===\n\nAfter.")
    assert text.splitlines()[4:6] == ["| a | one two |", "| b | three |"] and text.endswith("\n\nAfter.")
    page = (site / "api" / "datasets.html").read_text()
    assert re.search(r"<td><code>num_nodes</code></td>\s*<td><code>\[G\]</code></td>", page)


def test_examples_of_docstrings_are_code_and_settings_have_their_defaults(site: Path) -> None:
    tables = from_file(ROOT / "docs" / "griffe_tables.py")
    assert tables.with_fenced_examples("One.\n\n  >>> f(\n  ... 2)\n  3\n\nTwo.").splitlines() == [
        "One.", "", "  ```pycon", "  >>> f(", "  ... 2)", "  3", "  ```", "", "Two."
    ]  # fmt: skip
    for page in (site / "api").glob("*.html"):
        text = page.read_text()
        assert "<blockquote>" not in text and "_setting" not in text, page.name
    assert "did you mean" in (site / "api" / "training.html").read_text()


def test_cells_of_tables_fit_narrow_screens() -> None:
    hooks = from_file(ROOT / "docs" / "hooks.py")
    assert hooks.on_page_content("<td><code>a/b.py</code></td>") == "<td><code>a/<wbr>b.py</code></td>"
    assert hooks.on_page_content('<td style="x">76.8 ± 4.6</td>') == '<td style="x">76.8&nbsp;±&nbsp;4.6</td>'
    assert hooks.on_page_content("<td>2026-11-16, new</td>") == '<td><span class="whole">2026-11-16</span>, new</td>'
    words = "a sentence of some length, which asks for room"
    assert hooks.on_page_content(f"<td>{words}</td>") == f'<td class="sentence">{words}</td>'


def test_nothing_is_loaded_from_outside(site: Path) -> None:
    for page in site.glob("*.html"):
        assert not re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="?https?://[^>]*>', page.read_text()), page.name


def test_a_name_of_a_new_room_gets_a_page(monkeypatch: pytest.MonkeyPatch) -> None:
    hooks = from_file(ROOT / "docs" / "hooks.py")
    monkeypatch.setattr(hooks, "origins", lambda: {"Newcomer": "enfa.elsewhere.file", "Rows": "enfa.nn.bag.rows"})
    assert hooks.reference()["api/elsewhere.md"].endswith("::: enfa.Newcomer")
    assert "Newcomer" not in hooks.reference()["api/plans.md"] and "::: enfa.Rows" in hooks.reference()["api/plans.md"]
    monkeypatch.setattr(hooks, "origins", lambda: {"lost": "enfa"})
    with pytest.raises(ValueError, match=r"got none for \['lost'\]"):
        hooks.reference()
