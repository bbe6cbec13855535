"""Numbers near those of a conv's arguments, and how large these are."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

__all__ = ["largest", "near"]


def near(value: Any, by: float = 0.5, seed: int = 2) -> Any:
    """Other numbers of the same signs, all of them different."""
    if isinstance(value, dict):
        return {key: near(part, by, seed) for key, part in value.items()}
    if isinstance(value, tuple):
        return tuple(near(part, by, seed) for part in value)
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    noise = torch.rand(value.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return value * (1 + by * noise).to(value)


def largest(value: Any) -> float:
    """The largest number in it, of either sign."""
    if isinstance(value, dict):
        return largest(tuple(value.values()))
    if isinstance(value, tuple):
        return max(map(largest, value), default=0.0)
    if not isinstance(value, Tensor) or not value.is_floating_point() or not value.numel():
        return 0.0
    return float(value.abs().nan_to_num().max())
