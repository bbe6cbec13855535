import json
from pathlib import Path
from typing import Any

import pytest

from enfa.report.show.storage import show_storage

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def stored() -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "report" / "results" / "storage.json").read_text())


def test_tile_says_what_is_compressed(stored: dict[str, Any]) -> None:
    best = stored["results"]["peptides-func | edge deletion"]
    (distinct,) = (e for e in best["entries"] if e["kind"] == "distinct" and e["layers"] == 2)
    (tile,) = show_storage(stored).headlines
    assert "against bags that are not compressed" in tile.what
    assert f"against the same bags compressed: −{100 * (1 - distinct['bytes'] / best['compressed_bytes']):.1f}%" in tile.beside


def test_counts_the_settings_in_which_compressed_bags_are_larger(stored: dict[str, Any]) -> None:
    fewer = sum(
        e["bytes"] < r["compressed_bytes"] for r in stored["results"].values() for e in r["entries"] if e["kind"] == "distinct"
    )
    section = show_storage(stored)
    assert f"the smaller one in {fewer} of 72 settings" in " ".join(section.sentences)
    assert f"smaller in {fewer} of 72 settings" in section.headlines[0].beside
    assert sum(row[3] == "conventional, compressed" for row in section.tables[0].rows) == 18


def test_results_from_before_are_shown_without(stored: dict[str, Any]) -> None:
    for r in stored["results"].values():
        del r["compressed_bytes"]
    section = show_storage(stored)
    assert "same bags" not in section.headlines[0].beside
    assert not any(row[3] == "conventional, compressed" for row in section.tables[0].rows)
