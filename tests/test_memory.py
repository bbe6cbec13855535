"""enfa.keep_memory: what tensors leave behind is used again."""

import os
import platform
import subprocess
import sys

import pytest

import enfa

_FAULTS = """
import resource, sys, torch, enfa
kept = enfa.keep_memory() if sys.argv[1] == "kept" else None
torch.set_num_threads(1)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(2**24)  # 64 MB
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
for _ in range(6):  # until what is left behind lies where the next ones fit in
    faults()
print(kept, faults())
"""


def _faults(how: str, **more: str) -> tuple[str, int]:
    """What was returned, and how many pages the system made for tensors of 64 MB, one after the other."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")} | more
    done = subprocess.run([sys.executable, "-c", _FAULTS, how], capture_output=True, text=True, env=environment, check=True)
    kept, faults = done.stdout.split()
    return kept, int(faults)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library than glibc, which is left alone")
def test_memory_is_used_again() -> None:
    plain, kept = _faults("plain"), _faults("kept")
    assert kept[0] == "True"
    assert plain[1] >= 5 * 32 and kept[1] * 5 <= plain[1]  # 16,384 pages of 4 kB each, or 32 of 2 MB


def test_what_the_environment_says_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_MMAP_MAX_", "65536")
    assert not enfa.keep_memory()


def test_other_libraries_are_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(platform, "libc_ver", lambda: ("", ""))
    assert not enfa.keep_memory()
