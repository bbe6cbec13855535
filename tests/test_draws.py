"""Draws as a function of a seed."""

import random
import subprocess
import sys

import numpy as np
import pytest
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


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the generator of a GPU needs one")
def test_the_generator_of_a_gpu_is_as_before_too() -> None:
    """Also where nothing has used the GPU before."""
    code = """
import sys, torch
from enfa.draws import drawn

torch.manual_seed(7)
if "used" in sys.argv:
    torch.empty(1, device="cuda")
if "drawn" in sys.argv:
    with drawn(3):
        torch.rand(1, device=sys.argv[-1])
print(torch.rand(4, device="cuda").tolist())
"""
    given = ["", "drawn cpu", "drawn cuda", "used drawn cpu", "used drawn cuda"]
    made = [
        subprocess.run([sys.executable, "-c", code, *one.split()], capture_output=True, text=True, check=True) for one in given
    ]
    assert len({one.stdout for one in made}) == 1
