"""What figures depend on: the machine and the versions."""

import os
import platform
from pathlib import Path
from typing import Any

import numba
import numpy as np
import torch
import torch_geometric
import zstandard

__all__ = ["machine"]


def machine() -> dict[str, Any]:
    """Hardware and versions, for the head of a result file."""
    from enfa import __version__  # the package itself may still be loading when this file is

    cpu, info = platform.processor(), Path("/proc/cpuinfo")
    if info.exists():
        lines = (line.partition(":") for line in info.read_text().splitlines())
        cpu = next((value.strip() for key, _, value in lines if key.strip() == "model name"), cpu)
    return {
        "cpu": cpu,
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_geometric": torch_geometric.__version__,
        "numpy": np.__version__,
        "numba": numba.__version__,
        "zstandard": zstandard.__version__,
        "enfa": __version__,
    }
