import time

from enfa.training.results.parts import NAMES, Parts


def test_what_is_timed_within_another_part_is_not_counted_twice() -> None:
    said: list[str] = []
    parts = Parts(said.append)
    with parts.timed("epochs"):
        with parts.timed("buckets"):
            time.sleep(0.05)
        parts.add("kernels", 0.01)
    assert said == ["epochs", "buckets"]
    assert parts.seconds["buckets"] >= 0.05 > parts.seconds["epochs"] + 0.01
    assert list(parts.to_dict()) == [name for name in NAMES if name in parts.seconds] == ["buckets", "kernels", "epochs"]


def test_a_part_is_said_once_and_adds_up() -> None:
    said: list[str] = []
    parts = Parts(said.append)
    for _ in range(2):
        with parts.timed("read"):
            time.sleep(0.01)
    assert said == ["read"] and parts.seconds["read"] >= 0.02
