"""Parts of a kernel's work: every one is done once, whichever threads there are."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from enfa.nn.ops import threads
from enfa.nn.ops.threads import WORTH, in_threads


@pytest.fixture(autouse=True)
def three_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: 3)


def test_every_run_is_in_one_part() -> None:
    found: list[tuple[int, int]] = []
    in_threads(10, 3 * WORTH, lambda begin, end: found.append((begin, end)))
    assert sorted(found) == [(0, 3), (3, 6), (6, 10)]


def test_a_thread_that_outlives_the_main_one_does_all_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python shuts pools down when the main thread ends, before it waits for the others, one of which may train."""
    pool = ThreadPoolExecutor()
    pool.shutdown()
    monkeypatch.setattr(threads, "_pool", lambda process: pool)
    test_every_run_is_in_one_part()


@pytest.mark.parametrize("where", [0, 3, 6])
def test_an_error_is_raised_when_all_parts_have_ended(where: int) -> None:
    ended = []

    def call(begin: int, end: int) -> None:
        if begin == where:
            raise ValueError("this part")
        ended.append(begin)

    with pytest.raises(ValueError, match="this part"):
        in_threads(10, 3 * WORTH, call)
    assert len(ended) == 2
