"""Lightning's trainer, with what a run's settings say. Importing this file needs Lightning."""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from enfa.training.loop.graphed import on_gpu, uses_graphs
from enfa.training.loop.last import LastCheckpoint
from enfa.training.loop.lightning import pl
from enfa.training.loop.whole import WholeCheckpoints
from enfa.training.metrics import NEAR, lower_is_better, mode
from enfa.training.settings.config import Config
from enfa.training.settings.folder import BEST, LAST

__all__ = ["quietly", "tester_of", "trainer_of"]

_PRECISION: dict[str, Any] = {"32": "32-true", "64": "32-true", "bf16": "bf16-mixed", "16": "16-mixed"}
# On workers (a slice costs little), on folders that hold a run to resume, on what is as it should be.
_ADVICE = (
    ".*does not have many workers.*",
    ".*Checkpoint directory.*",
    ".*number of training batches.*",
    ".*isinstance.treespec.*",
    ".*lr_scheduler.step.*",
    ".*callbacks used to create.*",
    ".*overridden `transfer_batch_to_device`.*",
    ".*resuming from a checkpoint that ended before.*",
    ".*`training_step` returned `None`.*",
    ".*in eval mode at the start of training.*",
)


def _told_already(failed: threading.ExceptHookArgs) -> bool:
    """Whether a thread's error will be raised by the main one: TensorBoard's writer keeps it for the next that writes."""
    return isinstance(failed.exc_value, OSError) and type(failed.thread).__name__ == "_AsyncWriterThread"


@contextmanager
def quietly() -> Iterator[None]:
    """Without Lightning's banners and advice."""
    hook = threading.excepthook
    threading.excepthook = lambda failed: None if _told_already(failed) else hook(failed)
    logs = [logging.getLogger(name) for name in ("lightning.pytorch", "pytorch_lightning")]
    before = [log.level for log in logs]
    for log in logs:
        log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            for text in _ADVICE:
                warnings.filterwarnings("ignore", text)
            yield
    finally:
        threading.excepthook = hook
        for log, level in zip(logs, before):
            log.setLevel(level)


class EarlyStopping(pl.callbacks.EarlyStopping):  # of the same name: checkpoints keep what it knows under that
    """Lightning's, but a resumed run has the patience of its settings, not that of the checkpoint."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        super().load_state_dict({**state_dict, "patience": self.patience})


def _logger(folder: Path) -> Any:
    """TensorBoard's, where it is installed. The CSV file is the module's own, because it survives a resumption whole."""
    try:
        return pl.loggers.TensorBoardLogger(folder, name="", version="")
    except ModuleNotFoundError:
        return False


def _bars(progress: bool) -> list[Any]:
    """On standard error, so that a pipe reads results alone, and may be closed."""
    return [pl.callbacks.RichProgressBar(console_kwargs={"stderr": True})] if progress else []


def _precision(config: Config) -> Any:
    return "32-true" if uses_graphs(config) else _PRECISION[config.precision]


def trainer_of(config: Config, metric: str, folder: Path, progress: bool, deadline: float | None) -> pl.Trainer:
    """Trains a run into its folder."""

    class Deadline(pl.callbacks.Callback):  # type: ignore[valid-type, misc]
        def on_train_epoch_end(self, trainer: pl.Trainer, _: pl.LightningModule) -> None:
            # all ranks must agree, and their clocks need not
            late = deadline is not None and time.monotonic() > deadline
            trainer.should_stop |= trainer.strategy.reduce_boolean_decision(late, all=False)

    files: dict[str, Any] = {
        "dirpath": folder, "mode": mode(metric), "save_on_train_epoch_end": True, "auto_insert_metric_name": False,
        "enable_version_counter": False,
    }  # fmt: skip
    callbacks: list[Any] = [
        pl.callbacks.ModelCheckpoint(filename=BEST.removesuffix(".ckpt"), monitor="valid/score", **files),
        LastCheckpoint(folder / LAST),  # behind the best one, whose state it holds
    ]
    callbacks += _bars(progress)
    if deadline is not None:
        callbacks.append(Deadline())
    if config.early_stopping is not None or config.stop_at is not None:
        patience = config.epochs if config.early_stopping is None else config.early_stopping
        # Lightning stops above the threshold, not at it; the score is float32 by then
        near = NEAR if lower_is_better(metric) else -NEAR
        threshold = None if config.stop_at is None else config.stop_at + near
        callbacks.append(
            EarlyStopping(
                "valid/score",
                mode=mode(metric),
                patience=patience,
                stopping_threshold=threshold,
                check_on_train_epoch_end=True,
            )
        )
    accelerator = {"gpu": "gpu", "cpu": "cpu", "auto": "gpu" if torch.cuda.is_available() else "cpu"}[config.accelerator]
    return pl.Trainer(
        default_root_dir=folder,
        accelerator=accelerator,
        devices=config.devices,
        strategy="ddp" if config.devices > 1 else "auto",
        precision=_precision(config),
        max_epochs=config.epochs,
        callbacks=callbacks,
        plugins=[WholeCheckpoints()],
        logger=_logger(folder),
        enable_progress_bar=progress,
        enable_model_summary=False,
        num_sanity_val_steps=0,
        use_distributed_sampler=False,  # our loaders share every batch between the ranks
    )


def tester_of(config: Config, progress: bool) -> pl.Trainer:
    """Evaluates, on one device, and writes nothing."""
    return pl.Trainer(
        accelerator="gpu" if on_gpu(config) else "cpu",
        devices=1,
        precision=_precision(config),
        callbacks=_bars(progress),
        logger=False,
        enable_progress_bar=progress,
        enable_checkpointing=False,
        use_distributed_sampler=False,
    )
