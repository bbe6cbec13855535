"""The device that was measured on, in the words that stand under every figure; and how much memory it has left."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from enfa.report.machine import machine

__all__ = ["free_bytes", "measured_on"]


def measured_on(device: str) -> dict[str, Any]:
    """Hardware and versions; with a GPU its name too."""
    gpu = {"gpu": torch.cuda.get_device_name()} if device == "cuda" else {}
    return {**gpu, **machine()}


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
