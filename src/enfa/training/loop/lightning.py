"""Lightning, under whichever of its two names it is installed. Importing this file imports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import lightning.pytorch as pl
else:
    try:
        import lightning.pytorch as pl
    except ImportError:
        import pytorch_lightning as pl

__all__ = ["pl"]
