"""One thread, few examples, and the real data where it is there."""

import gc
import os
from collections import Counter
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# Graphs are tiny here: a second thread costs more than it gives.
torch.set_num_threads(1)

# Importing and collecting make a million objects that stay: looking through them for garbage takes seconds, so it begins after.
gc.disable()

# `pytest --hypothesis-profile=thorough` looks harder. On CI every run draws the same examples.
_common = {"deadline": None, "derandomize": "CI" in os.environ, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=8, **_common)
settings.register_profile("thorough", max_examples=400, **_common)
settings.load_profile("quick")


# Few tests, each of which starts processes or trains: begun last, they would keep one core waiting. The first two begin side by
# side: while one process interprets kernels of Triton, the other compiles those of numba, which both would compile otherwise.
_LONG = (
    "test_triton.py", "test_captured.py", "test_ddp.py", "test_reproduce.py", "test_run.py", "test_sweep.py",
    "test_examples.py", "test_checkpoints.py", "test_same_training.py", "test_storage.py",
)  # fmt: skip


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Long files first, then those with many tests."""
    tests = Counter(item.path for item in items)
    long = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: (long.get(item.path.name, len(long)), -tests[item.path], str(item.path)))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of compact real datasets: ``../shared/data`` beside the repository, or ENFA_DATA."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ENFA_DATA", beside))
    if not (folder / "PROTEINS.npz").is_file():
        pytest.skip(f"no real data in {folder} (set ENFA_DATA)")
    return folder
