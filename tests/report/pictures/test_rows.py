import pytest

pytest.importorskip("matplotlib", reason="pictures need the extra enfa[report]")

from enfa.report.pictures.rows import draw_rows


def test_the_legend_fits_into_the_picture() -> None:
    rows = [2_222_222_222] * 4
    figure = draw_rows(
        {"layers": 4, **dict.fromkeys(("conventional", "rows_within_hops", "affected", "distinct"), rows)}, "large"
    )
    figure.canvas.draw()
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.x1
