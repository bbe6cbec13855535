"""Draws as a function of a seed."""

import random

import numpy as np
import torch

from enfa.draws import drawn, drawn_late


def _numbers() -> list[float]:
    return [float(torch.rand(())), random.random(), float(np.random.rand())]


def test_a_function_of_the_seed_and_nothing_else() -> None:
    expected = _numbers(), torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    found = []
    for seed in (3, 3, 4, -1, 2**63 - 1):
        with drawn(seed):
            found.append(_numbers())
    with drawn_late(3):
        found.append(_numbers())
    assert found[0] == found[1] and len({tuple(numbers) for numbers in found}) == len(found) - 1
    assert torch.equal(torch.get_rng_state(), expected[1]) and random.getstate() == expected[2]
    assert np.random.get_state()[1].tolist() == expected[3] and _numbers() != expected[0]


def test_generators_are_as_before_an_error() -> None:
    before = random.getstate()
    try:
        with drawn(1):
            raise KeyError
    except KeyError:
        assert random.getstate() == before
