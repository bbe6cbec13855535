"""The labels of many graphs, as one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

__all__ = ["added_labels", "labels"]


def labels(graphs: Sequence[Data]) -> Tensor | None:
    """``y`` of all graphs, stacked: [G] for single values, [G, T] for rows of T; None if a graph has none."""
    ys = [getattr(data, "y", None) for data in graphs]
    if any(y is None for y in ys):
        return None
    tensors = [torch.as_tensor(y).detach().cpu() for y in ys]
    flat = [y.reshape(1, -1) if y.ndim != 2 or y.shape[0] != 1 else y for y in tensors]
    for position, y in enumerate(flat):
        if y.shape != flat[0].shape:
            raise ValueError(
                f"graph {position}: Expected 'y' of shape {list(flat[0].shape)}, got {list(y.shape)}"
            )
    stacked = torch.cat(flat)
    return stacked[:, 0] if all(y.numel() == 1 and y.ndim < 2 for y in tensors) else stacked


def added_labels(old: Tensor, graphs: Sequence[Data]) -> Tensor:
    """Labels when graphs are added to a dataset that has some: NaN (-1 for integers) where the new have none."""
    new = labels(graphs)
    if new is None:
        new = torch.full((len(graphs), *old.shape[1:]), float("nan") if old.is_floating_point() else -1)
    elif new.shape[1:] != old.shape[1:]:
        expected, got = list(old.shape[1:]), list(new.shape[1:])
        raise ValueError(f"Expected 'y' of shape {expected} per graph, as compiled, got {got}")
    return torch.cat([old, new.to(old.dtype)])
