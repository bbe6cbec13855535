"""Which of numba's kernels a run will need, by its settings alone."""

from __future__ import annotations

from pathlib import Path

from enfa.training.settings.config import Config

__all__ = ["GPU", "groups_of"]

GPU = ("batches", "cut")  # those that only training on one needs
DRIVER = Path("/dev/nvidiactl")  # asking PyTorch takes seconds


def groups_of(config: Config) -> tuple[str, ...]:
    """Groups of :mod:`enfa.ahead` beside that of all runs. A wrong guess costs time and no more."""
    groups = () if config.cache is None and config.shards is None else ("file",)
    if config.accelerator == "cpu" or config.graphed is False or not DRIVER.exists():
        return groups
    return (*groups, "cut" if config.model == "ds" and config.conv in (None, "gin") else "batches")
