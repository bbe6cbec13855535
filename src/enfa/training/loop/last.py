"""The checkpoint to resume from. Importing this file needs Lightning."""

import time
from pathlib import Path
from typing import Any

from torch import Tensor

from enfa.training.loop.lightning import pl

__all__ = ["LastCheckpoint"]


def _copied(value: Any) -> Any:
    """Tensors go on changing as the run goes on."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(v) for v in value)
    return value


class LastCheckpoint(pl.callbacks.Checkpoint):
    """Where a run stood at the end of its last epoch, on disk at most every some seconds and when it ends.

    Writing takes as long as an epoch of a small dataset does. In between it is kept in memory, from where it is written
    when the run is interrupted; a process that is killed outright loses these seconds. With several processes every
    epoch is written, because all of them must write together.
    """

    def __init__(self, path: Path, seconds: float = 10.0) -> None:
        self.path, self.seconds = path, seconds
        self.writes = 0
        self._at = float("-inf")
        self._kept: dict[str, Any] | None = None

    def on_train_epoch_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        if trainer.world_size > 1 or time.monotonic() - self._at >= self.seconds:
            trainer.save_checkpoint(self.path, weights_only=False)  # the optimiser too; this is not about reading
            self._kept, self._at, self.writes = None, time.monotonic(), self.writes + 1
        else:
            self._kept = _copied(trainer._checkpoint_connector.dump_checkpoint(weights_only=False))

    def _write(self, trainer: pl.Trainer) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            self.writes += 1
            trainer.strategy.save_checkpoint(kept, self.path)

    def on_train_end(self, trainer: pl.Trainer, pl_module: pl.LightningModule) -> None:
        self._write(trainer)

    def on_exception(self, trainer: pl.Trainer, pl_module: pl.LightningModule, exception: BaseException) -> None:
        self._write(trainer)
