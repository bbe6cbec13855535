"""Tensors that users pass in, as NumPy and files have them."""

import numpy as np
import torch
from torch import Tensor

__all__ = ["in_numpy", "is_kept", "of_type", "widened"]

# of labels and attributes: what PyTorch can take rows of, and what files hold
_KEPT = {
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.float32, torch.float64,
}  # fmt: skip

_WIDER = {
    torch.bfloat16: torch.float32, torch.uint16: torch.int32, torch.uint32: torch.int64, torch.uint64: torch.int64,
}  # fmt: skip


def widened(value: Tensor) -> Tensor:
    """bfloat16, which NumPy has not, and unsigned integers, of which PyTorch takes no rows, as types that hold their values."""
    if value.dtype == torch.uint64 and (not is_plain(value) or (value.view(torch.int64) < 0).any()):
        return value  # 2^63 and more
    return value.to(_WIDER[value.dtype]) if value.dtype in _WIDER else value


def is_plain(value: Tensor) -> bool:
    """Whether its numbers are there, one by one."""
    return value.layout == torch.strided and value.device.type != "meta"


def is_kept(value: Tensor) -> bool:
    """Whether labels and attributes can be such a tensor."""
    return value.dtype in _KEPT and is_plain(value)


def in_numpy(value: Tensor) -> np.ndarray | None:
    """The numbers of a tensor; None where NumPy cannot have them: it is sparse or quantized, 8-bit floats, or without data."""
    try:
        return widened(value).detach().cpu().resolve_conj().resolve_neg().numpy()
    except (TypeError, RuntimeError):
        return None


def of_type(value: Tensor) -> str:
    """For errors."""
    return f"a tensor of {value.dtype}, {value.layout}, on {value.device}"
