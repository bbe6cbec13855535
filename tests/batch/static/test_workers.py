"""Processes that work ahead answer in order, and what happens to them is told."""

from __future__ import annotations

import gc
import os
import signal
import time

import pytest

from enfa.batch.static.workers import Workers


def _work(kind: int, a: int, place: int) -> int:
    if kind == 1:
        raise KeyError("not there")
    if kind == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == 3:
        gc.collect()
    if kind == 4:
        time.sleep(a / 2)
    if kind == 5:
        raise KeyError("x" * 10_000 + "not there either")
    return 100 * a + place


def _workers(count: int, places: int) -> Workers:
    workers = Workers(count, _work)
    for place in range(places):
        workers.free(place)
    return workers


def test_workers_answer_in_order_and_their_failures_are_told() -> None:
    workers, others = _workers(2, 8), _workers(1, 1)
    for n in range(6):
        workers.give((0, n))
    found = [workers.take() for _ in range(6)]
    assert [result for result, _ in found] == [100 * n + place for n, (_, place) in enumerate(found)]
    assert len({place for _, place in found}) == 6  # none is written twice unless it was freed
    for kind, told in ((1, "not there"), (5, "not there either"), (1, "not there"), (5, "not there either")):
        workers.give((kind, 0))
        with pytest.raises(RuntimeError, match=told):
            workers.take()
    workers.give((2, 0))
    with pytest.raises(RuntimeError, match=r"ended \(exit code -9\)"):
        workers.take()
    processes = workers.processes[:]
    workers.close()  # at once, although the others were forked later and have copies of its pipes
    assert not any(process.is_alive() for process in processes)
    others.close()


def test_a_forked_process_leaves_them_alone() -> None:
    workers = _workers(2, 4)
    if (child := os.fork()) == 0:
        workers.close()
        os._exit(0)
    os.waitpid(child, 0)
    for n in range(4):
        workers.give((0, n))
    assert [workers.take()[0] // 100 for _ in range(4)] == [0, 1, 2, 3]
    workers.close()


def test_a_slow_task_holds_up_nobody_and_places_are_not_written_before_they_are_free() -> None:
    workers = _workers(2, 4)
    workers.give((4, 2))
    for n in range(20):
        workers.give((0, n))
    (first, slow), others = workers.take(), []
    assert first == 200 + slow
    assert sorted(place for _, place, _ in workers._early.values()) == [1 - slow % 2, 3 - slow % 2]  # none waited for it
    for _ in range(20):
        others.append(workers.take())
        workers.free(others[-1][1])
    assert [result // 100 for result, _ in others] == list(range(20))
    workers.close()


def test_a_killed_worker_is_noticed_although_another_one_works_on() -> None:
    workers = _workers(3, 30)
    workers.give((2, 0))
    for n in range(9):
        workers.give((0, n))
    with pytest.raises(RuntimeError, match="ended"):
        workers.take()
    workers.close()
    dead = _workers(1, 1)
    dead.processes[0].kill()
    dead.processes[0].join()
    with pytest.raises(RuntimeError, match="ended"):
        dead.give((0, 0))
    dead.close()


def test_no_task_is_torn_or_lost_between_many_readers() -> None:
    workers = _workers(8, 32)
    given = taken = 0
    while taken < 20_000:
        while workers.waiting < 24 and given < 20_000:
            workers.give((0, given))
            given += 1
        result, place = workers.take()
        assert result == 100 * taken + place
        workers.free(place)
        taken += 1
    workers.close()


class _OnTheGpu:
    """What must be taken apart in the process that made it."""

    def __init__(self, tells: int) -> None:
        self.tells, self.itself = tells, self

    def __del__(self) -> None:
        os.write(self.tells, b"gone")


def test_workers_leave_alone_what_the_main_process_has_dropped() -> None:
    hears, tells = os.pipe()
    os.set_blocking(hears, False)
    gc.disable()
    try:
        _OnTheGpu(tells)  # garbage, but not collected yet
        workers = _workers(1, 1)
        workers.give((3, 0))
        workers.take()
        with pytest.raises(BlockingIOError):
            os.read(hears, 4)
        workers.close()
        gc.collect()
        assert os.read(hears, 4) == b"gone"
    finally:
        gc.enable()
        os.close(hears)
        os.close(tells)
