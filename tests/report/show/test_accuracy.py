import json
from pathlib import Path

import pytest

from enfa.report.show.accuracy import show_accuracy

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("runs", "said"), [(10, "ten folds"), (1, "1 of ten folds"), (9, "9 of ten folds"), (20, "20 runs of ten folds")]
)
def test_the_tile_says_how_many_folds_its_number_is_of(runs: int, said: str) -> None:
    stored = json.loads((ROOT / "docs" / "report" / "results" / "accuracy.json").read_text())
    stored["results"]["files"]["PROTEINS | node marking | DS"]["runs"] = runs
    (tile,) = show_accuracy(stored).headlines
    assert tile.what == f"PROTEINS accuracy, node marking, {said}"
