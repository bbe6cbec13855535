"""Whether a hook takes what operations save for their gradients, as that of a checkpoint does."""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["saving_is_watched"]

_autograd: Any = torch._C._autograd


def _tried() -> bool:
    """Before PyTorch 2.7 nothing tells; such hooks cannot be turned off while there are some."""
    if not _autograd._saved_tensors_hooks_is_enabled():  # so there are none
        return False
    try:
        _autograd._saved_tensors_hooks_disable("tried")
    except RuntimeError:
        return True
    finally:  # where it was refused, too, it is noted
        _autograd._saved_tensors_hooks_enable()
    return False


def _told() -> bool:
    return _autograd._top_saved_tensors_default_hooks(False) is not None


saving_is_watched = _told if hasattr(_autograd, "_top_saved_tensors_default_hooks") else _tried
