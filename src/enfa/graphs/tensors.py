"""Tensors that users pass in, as NumPy and files have them."""

import numpy as np
import torch
from torch import Tensor

__all__ = ["in_numpy", "is_kept", "of_type", "widened"]

# of labels and attributes: what PyTorch can take rows of, and what files hold
_KEPT = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
}  # fmt: skip


def widened(value: Tensor) -> Tensor:
    """bfloat16, which NumPy has not, as float32, which holds every value of it."""
    return value.float() if value.dtype == torch.bfloat16 else value


def is_kept(value: Tensor) -> bool:
    """Whether labels and attributes can be such a tensor."""
    return value.dtype in _KEPT and value.layout == torch.strided and value.device.type != "meta"


def in_numpy(value: Tensor) -> np.ndarray | None:
    """The numbers of a tensor; None where NumPy cannot have them: it is sparse or quantized, 8-bit floats, or without data."""
    try:
        return widened(value).detach().cpu().numpy()
    except (TypeError, RuntimeError):
        return None


def of_type(value: Tensor) -> str:
    """For errors."""
    return f"a tensor of {value.dtype}, {value.layout}, on {value.device}"
