"""What was measured on: without it a number means nothing."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numba
import numpy as np
import torch
import torch_geometric

import enfa

__all__ = ["describe_machine", "free_bytes"]


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return " ".join(line.partition(":")[2].split())
    return platform.processor() or platform.machine()


def describe_machine(device: str) -> dict[str, str]:
    """Hardware and versions, as they are printed under every figure."""
    hardware = f"{_cpu()}, {os.cpu_count()} cores"
    if device == "cuda":
        hardware = f"{torch.cuda.get_device_name()}, host {hardware}"
    return {
        "hardware": hardware,
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "enfa": enfa.__version__,
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
    }


def free_bytes(device: str) -> int:
    """Memory that a step may take: four fifths of what is free."""
    if device == "cuda":
        return int(0.8 * torch.cuda.mem_get_info()[0])
    info = Path("/proc/meminfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("MemAvailable"):
                return int(0.8 * 1024 * int(line.split()[1]))
    return 8 << 30
