"""Draws that are a function of a seed, of every generator that models and policies may draw of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
import torch

__all__ = ["drawn", "drawn_late", "seed_all"]


def seed_all(seed: int) -> None:
    """PyTorch's generator, and those of Python and NumPy, of which code of the user's own may draw."""
    if torch.accelerator.is_available():
        torch.manual_seed(seed)
    else:  # the same, without the stack traces that it writes down for devices that are not there
        torch.default_generator.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed % 2**32)


@contextmanager
def drawn(seed: int) -> Iterator[None]:
    """What is drawn in here is a function of the seed, and leaves the generators as they were."""
    before, numpy = random.getstate(), np.random.get_state()
    with torch.random.fork_rng(devices=[]):
        seed_all(seed)
        try:
            yield
        finally:
            random.setstate(before)
            np.random.set_state(numpy)


def drawn_late(seed: int) -> AbstractContextManager[None]:
    """For what is drawn when the data are seen, by a policy or as weights of lazy modules: not what was drawn before again."""
    return drawn(-1 - seed)
