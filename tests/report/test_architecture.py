import re
from pathlib import Path

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import enfa
from enfa.report.architecture import PARTS, draw_architecture, example, main

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "architecture.md").read_text()


def test_the_picture_tells_the_rows_of_the_plan() -> None:
    graph, _, plan = example()
    (axes,) = draw_architecture().axes
    texts = [text.get_text() for text in axes.texts]
    full = enfa.make_plan([graph], enfa.NodeMarking(), plan.program, "full")
    kinds = ["pairs", "pairs", "pairs", "subgraphs", "graph"]
    for number, kind in enumerate(kinds):
        rows, total = plan.num_rows(number), full.num_rows(number)
        assert f"{rows} {'rows' if total > 1 else 'row'} for {total} {kind}" in texts
    copies = [f"×{count}" for table in plan.tables for count in ([1] if table.copies is None else table.copies.tolist())]
    assert sorted(text for text in texts if re.fullmatch(r"×\d+", text)) == sorted(copies)
    told = re.search(r"(\d+), (\d+) and (\d+) rows stand for (\d+) pairs each, (\d+) rows for five", PAGE)
    assert told and [int(n) for n in told.groups()] == [plan.num_rows(n) for n in range(3)] + [plan.num_pairs, plan.num_rows(3)]


def test_nothing_is_written_over_something_else() -> None:
    figure = draw_architecture()
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts]
    for k, one in enumerate(boxes):
        assert figure.bbox.x0 < one.x0 and one.x1 < figure.bbox.x1 and figure.bbox.y0 < one.y0
        assert not any(one.overlaps(other) for other in boxes[k + 1 :])


def test_the_page_shows_it_and_it_repeats(tmp_path: Path) -> None:
    assert "](images/architecture.svg)" in PAGE and (DOCS / "images" / "architecture.svg").exists()
    for name in ("one", "two"):
        main(str(tmp_path / f"{name}.svg"))
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:\w+/)+\w*(?:\.py)?|[a-z]+)`", PAGE))))
def test_folders_and_files_of_the_page_exist(name: str) -> None:
    roots = (DOCS.parent / "src" / "enfa", DOCS.parent)
    verbs = {"full", "distinct", "ego", "propagate", "across", "root", "diagonal", "pool", "spread"}
    assert name in verbs or any((root / name).exists() for root in roots), name


def test_it_is_short_and_names_every_part() -> None:
    assert len(PAGE.splitlines()) < 150
    assert all(f"`{part}`" in PAGE for part in PARTS)
