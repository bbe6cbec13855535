"""Which epochs count for a sustained rate."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture()
def epoch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield __import__("gpu_parts.epoch", fromlist=["epoch"])
    for name in [n for n in sys.modules if n.split(".")[0] == "gpu_parts"]:
        del sys.modules[name]


def _run(epoch, batches: int, busy_in: set[int]) -> tuple[list[float], int, int]:
    """Epoch n takes n seconds; in some a step is not replayed."""
    count = {"epochs": 0, "busy": 0}

    def timed() -> float:
        count["busy"] += count["epochs"] in busy_in
        count["epochs"] += 1
        return float(count["epochs"] - 1)

    found, left_out = epoch.sustained(timed, lambda: count["busy"], batches)
    return found, left_out, count["epochs"]


def test_the_stock_is_used_up_first(epoch) -> None:
    found, left_out, run = _run(epoch, 9, set())
    assert found[0] == 7.0 and left_out == 0  # 63 steps were done
    assert len(found) == 45 and run == 52  # 405 steps


def test_epochs_with_a_capture_are_left_out_and_fill_the_stock_again(epoch) -> None:
    found, left_out, run = _run(epoch, 30, {3, 7})
    assert left_out == 2 and found[:2] == [2.0, 6.0] and found[2] == 10.0
    assert run == 8 + 2 + 12  # 14 epochs of 30


def test_it_ends(epoch) -> None:
    assert _run(epoch, 9, set(range(1000))) == ([], epoch.EPOCHS, epoch.EPOCHS)
