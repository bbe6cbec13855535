"""One thread, few examples, and the real data where it is there."""

import gc
import os
import random
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, settings

# Graphs are tiny here: a second thread costs more than it gives; in processes that tests start, too.
torch.set_num_threads(1)
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["ENFA_AHEAD"] = "0"  # every process of the suite would wait for kernels that only some of its tests need

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


# Files that draw many cases of one claim. `make test` runs every sixth case of theirs, and nothing that is marked `long`;
# `make test-others` runs the others, and CI both. Pytest by itself leaves nothing out.
_DRAWN = (
    "batch/static/test_packed.py", "batch/static/test_padding.py", "batch/test_dataset.py", "batch/test_extend.py",
    "cli/test_policies.py", "edits/policies/test_exact.py", "edits/policies/test_subsample.py", "nn/bag/test_pyg_convs.py",
    "nn/bag/test_explicit.py", "nn/cuda/test_captured.py", "nn/cuda/test_loop.py", "nn/cuda/test_loop_state.py",
    "nn/rowwise/test_held.py", "nn/test_checkpoints.py", "nn/test_rooted.py", "plan/rows/test_distinct.py",
    "plan/slicing/test_slice.py", "plan/slicing/test_unshared.py", "plan/test_gradients.py", "report/bags/test_storage.py",
    "test_exact.py", "test_uncounted.py",
)  # fmt: skip


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--cases", choices=("some", "others", "all"), default="all",
        help="of tests that draw many cases of one claim, every sixth; the others, and long tests; or all (the default)",
    )  # fmt: skip


def _others(items: list[pytest.Item]) -> set[pytest.Item]:
    """What `make test` leaves out."""
    tests = Path(__file__).parent
    drawn: dict[tuple[Path, str], list[pytest.Item]] = {}
    for item in items:
        if any(item.path == tests / name for name in _DRAWN):
            drawn.setdefault((item.path, getattr(item, "originalname", item.name)), []).append(item)
    found = {item for cases in drawn.values() if len(cases) > 5 for n, item in enumerate(cases) if n % 6}
    return found | {item for item in items if item.get_closest_marker("long")}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Long files first, then those with many tests."""
    if (cases := config.getoption("--cases")) != "all":
        others = _others(items)
        left = [item for item in items if (item in others) == (cases == "some")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in set(left)]
    tests = Counter(item.path for item in items)
    long = {name: place for place, name in enumerate(_LONG)}
    items.sort(key=lambda item: (long.get(item.path.name, len(long)), -tests[item.path], str(item.path)))


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True)
def _seeded(request: pytest.FixtureRequest) -> None:
    """A test draws the same numbers whichever tests its process ran before it."""
    seed = zlib.crc32(request.node.nodeid.encode())
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


@pytest.fixture(autouse=True)
def _no_code_of_others() -> Iterator[None]:
    """``--code FILE`` holds for the rest of a process: here for the rest of a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ENFA_CODE", raising=False)
        yield
        os.environ.pop("ENFA_CODE", None)


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of compact real datasets: ``../shared/data`` beside the repository, or ENFA_DATA."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("ENFA_DATA", beside))
    if not (folder / "PROTEINS.npz").is_file():
        pytest.skip(f"no real data in {folder} (set ENFA_DATA)")
    return folder
