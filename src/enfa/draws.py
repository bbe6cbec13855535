"""Draws that are a function of a seed, of every generator that models and policies may draw of."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import torch

__all__ = ["by_seed", "drawn", "drawn_late", "seed_all"]

_BY_SEED = ContextVar("_BY_SEED", default=False)


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
    before, numpy, used = random.getstate(), np.random.get_state(), torch.cuda.is_initialized()
    try:
        with torch.random.fork_rng(devices=range(torch.cuda.device_count()) if used else []):
            seed_all(seed)
            yield
    finally:
        random.setstate(before)
        np.random.set_state(numpy)
        if not used and torch.cuda.is_available():  # the seed is all the state that a GPU has until then
            torch.cuda.manual_seed_all(torch.initial_seed())


@contextmanager
def drawn_late(seed: int) -> Iterator[None]:
    """For what is drawn when the data are seen, by a policy or as weights of lazy modules: not what was drawn before again."""
    token = _BY_SEED.set(True)
    try:
        with drawn(-1 - seed):
            yield
    finally:
        _BY_SEED.reset(token)


def by_seed() -> bool:
    """Whether this is a run that draws by its seed on purpose: another one of that seed draws the same."""
    return _BY_SEED.get()
