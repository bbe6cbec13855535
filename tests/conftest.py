"""One thread, few examples, and the real data where it is there."""

import os
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, settings

# Graphs are tiny here: a second thread costs more than it gives.
torch.set_num_threads(1)

# `pytest --hypothesis-profile=thorough` looks harder. On CI every run draws the same examples.
_common = {"deadline": None, "derandomize": "CI" in os.environ, "suppress_health_check": list(HealthCheck)}
settings.register_profile("quick", max_examples=12, **_common)
settings.register_profile("thorough", max_examples=400, **_common)
settings.load_profile("quick")


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of compact real datasets: ``../shared/data`` beside the repository, or ENFA_DATA."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ENFA_DATA", beside))
    if not (folder / "PROTEINS.npz").is_file():
        pytest.skip(f"no real data in {folder} (set ENFA_DATA)")
    return folder
