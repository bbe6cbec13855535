import json
from pathlib import Path
from typing import Any

import pytest

from enfa.report.show.exactness import show_exactness

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def stored() -> dict[str, Any]:
    return json.loads((ROOT / "docs" / "report" / "results" / "exactness.json").read_text())


def test_the_box_says_what_exceeding_means(stored: dict[str, Any]) -> None:
    """It names each setting in which the promise was not kept as it stands, and what the conventional model does there."""
    for r in stored["results"].values():
        r["float64"]["weight"] = dict.fromkeys(r["float64"]["weight"], 1e-12)
    keys = list(stored["results"])
    for key, off, itself in ((keys[3], 6e-10, 5e-10), (keys[8], 2e-10, 1e-10)):
        stored["results"][key]["float64"]["weight"] |= {"ego": off, "renumbered": itself}
    section = show_exactness(stored)
    box = section.sentences[0]
    assert section.ok and "in 34 of 36 settings. In the other 2 (" in box
    listed = box.partition("other 2 (")[2].partition(")")[0].split("; ")
    assert listed == [keys[k].replace(" | ", ", ") for k in (3, 8)]
    assert "only the weights differ by more, by 6×10⁻¹⁰ at most" in box and "differs from itself by as much as 5×10⁻¹⁰" in box
    assert "Nothing but rounding" not in box
    stored["results"][keys[8]]["float64"]["weight"]["ego"] = 1e-12
    assert "in 35 of 36 settings. In the other one (" in show_exactness(stored).sentences[0]


def test_the_box_counts_settings_where_there_are_many(stored: dict[str, Any]) -> None:
    for key, r in stored["results"].items():
        off = 2e-10 if key.startswith(("EXP | node", "CEXP | edge deletion | DSS")) else 1e-12
        r["float64"]["weight"] = dict.fromkeys(r["float64"]["weight"], off)
    assert "in 31 of 36 settings. In the other 5 (4 of EXP, 1 of CEXP) only" in show_exactness(stored).sentences[0]


def test_the_box_where_all_is_within_the_promise(stored: dict[str, Any]) -> None:
    for r in stored["results"].values():
        r["float64"]["weight"] = dict.fromkeys(r["float64"]["weight"], 1e-12)
    box = show_exactness(stored).sentences[0]
    assert "in all 36 settings, to 1×10⁻¹⁰. Nothing but rounding is left." in box


def test_a_wrong_plan_is_no_matter_of_rounding(stored: dict[str, Any]) -> None:
    next(iter(stored["results"].values()))["float64"]["output"]["distinct"] = 1e-6
    section = show_exactness(stored)
    assert section.ok is False and section.sentences[0].startswith("NOT EXACT: 1 of 36")
