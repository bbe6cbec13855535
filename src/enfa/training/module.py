"""The Lightning module and the data module. Importing this file needs Lightning (the extra ``enfa[train]``)."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torchmetrics import SumMetric

from enfa.batch import CompiledDataset, DataLoader
from enfa.plan.pack import pack, unpack
from enfa.plan.prepare import Needs, lean, prepare
from enfa.plan.table import Plan
from enfa.training.build import Problem, make_model, training_draw
from enfa.training.config import Config
from enfa.training.disk import write_csv
from enfa.training.lightning import pl
from enfa.training.score import make_metric, summed_loss

__all__ = ["Batches", "TrainingModule"]


def moved(plan: Plan, needs: Needs, device: torch.device) -> Plan:
    """The plan on a device, in one transfer. It is prepared first, unless the loader has done that."""
    if "bag" not in plan.readout.cache:
        plan = prepare(plan, needs)
    plan = lean(plan, needs)
    return unpack(pack(plan).to(device), plan)


class TrainingModule(pl.LightningModule):
    """A model, its loss, its metric, Adam and the step-wise learning rate of ESAN.

    Every random number after the weights is a function of (seed, epoch, rank), so a run resumed at the end of an epoch
    draws what the uninterrupted one draws.
    """

    def __init__(self, config: Config, problem: Problem) -> None:
        super().__init__()
        self.config, self.problem = config, problem
        self.model = make_model(config, problem)
        make = (problem.metric, problem.task, problem.num_outputs)
        # two sums rather than a mean: MeanMetric forgets its weights when it does not look for NaN
        self.train_loss, self.train_labels = (
            SumMetric(nan_strategy="disable").set_dtype(torch.float64) for _ in range(2)
        )
        self.valid_score, self.test_score = make_metric(*make), make_metric(*make)
        self.curve: list[dict[str, float]] = []
        """What every finished epoch came to. Saved with the checkpoint, so a resumed run has all of it."""
        self.csv: Path | None = None
        self._lr = self._valid = float("nan")
        self._began, self._earlier = time.monotonic(), 0.0

    @property
    def seconds(self) -> float:
        """Since the run began, without the time between an interruption and the resumption."""
        return self._earlier + time.monotonic() - self._began

    def forward(self, plan: Plan) -> Tensor:
        return self.model(plan)

    def loss(self, plan: Plan) -> Tensor:
        """What to differentiate.

        One process divides by the measured labels of the whole batch. Ranks must divide by all ranks' labels too, and
        multiply by their number, because DistributedDataParallel averages gradients where it should add.
        """
        logits = self.model(plan)
        logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        assert plan.y is not None
        total, count = summed_loss(logits, plan.y, self.problem.task)
        self.train_loss.update(total.detach())
        self.train_labels.update(count)
        ranks = 1
        if dist.is_available() and dist.is_initialized():
            ranks = dist.get_world_size()
            count = count.clone()
            dist.all_reduce(count)
        return total * ranks / count.clamp(min=1)

    def transfer_batch_to_device(self, batch: Plan, device: torch.device, dataloader_idx: int) -> Plan:
        return batch if device.type == "cpu" else moved(batch, self.model.needs, device)

    def on_train_epoch_start(self) -> None:
        state = np.random.SeedSequence([self.config.seed, self.current_epoch, self.global_rank])
        torch.manual_seed(int(state.generate_state(1, np.uint64)[0] >> 1))
        self._lr = float(self.trainer.optimizers[0].param_groups[0]["lr"])

    def training_step(self, plan: Plan, _: int) -> Tensor:
        return self.loss(plan)

    def on_train_epoch_end(self) -> None:
        loss = float(self.train_loss.compute()) / max(float(self.train_labels.compute()), 1.0)
        self.train_loss.reset()
        self.train_labels.reset()
        self.log("train/loss", loss, prog_bar=True, sync_dist=True)
        self.curve.append({"epoch": self.current_epoch, "lr": self._lr, "loss": loss, "score": self._valid})
        if self.csv is not None and self.trainer.is_global_zero:
            write_csv(self.csv, self.curve)

    def validation_step(self, plan: Plan, _: int) -> None:
        self.valid_score.update(self.model(plan), plan.y)

    def on_validation_epoch_end(self) -> None:
        self._valid = float(self.valid_score.compute())
        self.valid_score.reset()
        self.log("valid/score", self._valid, prog_bar=True, sync_dist=True)

    def test_step(self, plan: Plan, _: int) -> None:
        self.test_score.update(self.model(plan), plan.y)

    def on_test_epoch_end(self) -> None:
        self.log("test/score", float(self.test_score.compute()), sync_dist=True)
        self.test_score.reset()

    def configure_optimizers(self) -> dict[str, Any]:  # type: ignore[override]
        c = self.config
        optimiser = torch.optim.Adam(self.model.parameters(), lr=c.lr, weight_decay=c.weight_decay)
        schedule = torch.optim.lr_scheduler.StepLR(optimiser, c.lr_decay_every, c.lr_decay)
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "epoch"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        from enfa import __version__

        checkpoint["enfa"] = {
            "version": __version__,
            "config": self.config.to_dict(),
            "problem": self.problem.to_dict(),
            "curve": self.curve,
            "seconds": self.seconds,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.curve, self._earlier = list(checkpoint["enfa"]["curve"]), checkpoint["enfa"]["seconds"]


class Batches(pl.LightningDataModule):
    """The loaders of one split. In distributed training every rank gets its part of every batch."""

    def __init__(self, config: Config, compiled: CompiledDataset, split: dict[str, np.ndarray]) -> None:
        super().__init__()
        self.config, self.compiled, self.split = config, compiled, split

    def _loader(self, part: str) -> DataLoader:
        c, trainer = self.config, self.trainer
        shard = (0, 1) if trainer is None else (trainer.global_rank, trainer.world_size)
        needs = None
        if trainer is not None and trainer.strategy.root_device.type != "cpu":
            needs = cast(TrainingModule, trainer.lightning_module).model.needs
        return DataLoader(
            self.compiled,
            c.batch_size,
            shuffle=part == "train",
            num_workers=c.num_workers,
            max_rows=c.max_rows,
            seed=c.seed,
            graphs=self.split[part],
            shard=shard,
            needs=needs,
            draw=training_draw(c) if part == "train" else None,
        )

    def train_dataloader(self) -> DataLoader:
        return self._loader("train")

    def val_dataloader(self) -> DataLoader:
        return self._loader("valid")

    def test_dataloader(self) -> DataLoader:
        return self._loader("test")
