"""The Lightning module. Importing this file needs Lightning (the extra ``enfa[train]``)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torchmetrics import Metric

from enfa.batch.static.packed import Packed
from enfa.draws import seed_all
from enfa.nn.cuda.captured import GraphedForward
from enfa.nn.cuda.step import Step
from enfa.plan.derived.pack import pack, unpack
from enfa.plan.derived.prepare import lean, prepare
from enfa.plan.table import Plan
from enfa.training.build import make_model
from enfa.training.checkpoint import FORMAT
from enfa.training.disk import write_csv
from enfa.training.loop.graphed import uses_graphs
from enfa.training.loop.lightning import pl
from enfa.training.loop.objective import Objective
from enfa.training.loop.optimiser import as_numbers, check_learnt, make_adam
from enfa.training.loop.schedule import Plateau, make_schedule
from enfa.training.problem import Problem
from enfa.training.results.parts import Parts
from enfa.training.score import make_metric
from enfa.training.settings.code import code_of_run, of_own_code
from enfa.training.settings.config import Config
from enfa.training.settings.folder import fingerprint
from enfa.training.settings.freeze import frozen_modules
from enfa.training.start.unread import tell

__all__ = ["TrainingModule", "moved"]

Batch = Plan | Iterator[Packed]


def moved(plan: Plan, device: torch.device) -> Plan:
    """The plan on a device, in one transfer. It is prepared first, unless the loader has done that."""
    needs = plan.program.needs
    plan = lean(prepare(plan, needs), needs)
    return unpack(pack(plan).to(device), plan)


class TrainingModule(pl.LightningModule):
    """A model, its loss, its metric, Adam and a schedule for its learning rate.

    Every random number after the weights is a function of (seed, epoch), so a run resumed at the end of an epoch draws what the
    uninterrupted one draws. All ranks draw the same: dropout between layers keeps a row, or does not, wherever it is.
    """

    def __init__(self, config: Config, problem: Problem, scales: bool = False) -> None:
        super().__init__()
        self.config, self.problem = config, problem
        self.objective = Objective(config, problem, scales)
        self.model = make_model(config, problem)
        self._frozen = tuple(frozen_modules(self.model, config.freeze))
        for module in self._frozen:
            module.requires_grad_(False)
        make = (problem.metric, problem.task, problem.num_outputs)
        self.valid_score, self.test_score = make_metric(*make), make_metric(*make)
        self.curve: list[dict[str, float]] = []
        """What every finished epoch came to. Saved with the checkpoint, so a resumed run has all of it."""
        self.csv: Path | None = None
        self.data = fingerprint(config)
        self._own = of_own_code(config)
        self.graphed = uses_graphs(config)
        self.automatic_optimization = not self.graphed
        self._step: Step | None = None
        self._forward: GraphedForward | None = None
        self.labels = torch.empty(0)  # of all graphs, where batches do not bring theirs
        self.steps: dict[str, int] = {}
        """Of a graphed run that has ended: how many graphs were captured, and how many steps ran without one."""
        self._found: list[Tensor] = []  # logits of a validation pass
        self._of: list[np.ndarray] = []  # and their graphs
        self._lr = self._valid = float("nan")
        self._began, self._earlier = time.monotonic(), 0.0
        self.parts = Parts()
        self._first: float | None = None  # when the first step began, until it is over
        self._warm = False
        self.train()

    def train(self, mode: bool = True) -> TrainingModule:
        """What is frozen stays as it is, its norms' statistics, too: it is in evaluation mode."""
        super().train(mode)
        for module in self._frozen:
            module.eval()
        return self

    @property
    def seconds(self) -> float:
        """Since the run began, without the time between an interruption and the resumption."""
        return self._earlier + time.monotonic() - self._began

    @property
    def _mixed(self) -> torch.dtype | None:
        """In graphed training Lightning knows of no precision: its autocast would keep old weights from step to step."""
        return torch.bfloat16 if self.graphed and self.config.precision == "bf16" else None

    def forward(self, plan: Plan) -> Tensor:
        return self.model(plan)

    def loss(self, plan: Plan) -> Tensor:
        """What to differentiate."""
        return self.objective(self.model(plan), self.objective.labels_of(plan))

    def _scored(self, metric: Metric, plan: Plan) -> None:
        metric.update(self.model(plan), self.objective.scaled(self.objective.labels_of(plan)))

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return moved(batch, device) if isinstance(batch, Plan) and device.type != "cpu" else batch

    def on_train_epoch_start(self) -> None:
        self._seed()
        # a rate on the GPU is a float32
        self._lr = float(f"{float(self.trainer.optimizers[0].param_groups[0]['lr']):.7g}")
        self.objective.begin()

    def _seed(self, *more: int) -> None:
        state = np.random.SeedSequence([self.config.seed, self.current_epoch, *more])
        seed_all(int(state.generate_state(1, np.uint64)[0]) >> 1)

    def _after_first(self) -> None:
        """Of steps that are not captured, the first is the one that compiles kernels."""
        if self._first is not None:
            self.parts.add("kernels", time.perf_counter() - self._first)
            self._first = None

    def training_step(self, batch: Batch, number: int) -> Tensor | None:
        self._after_first()
        if isinstance(batch, Plan):
            if not self._warm:
                self.parts.begin("kernels")
                self._first, self._warm = time.perf_counter(), True
            if self.trainer.world_size > 1:  # dropout in the head has drawn one number for each graph of the rank's own
                self._seed(number)
            return self.loss(batch)
        if self._step is None:
            optimiser = self.trainer.optimizers[0]
            for group in optimiser.param_groups:
                group["fused"] = True if self.device.type == "cuda" else group["fused"]
            self._step = Step(self.model, optimiser, self.objective, autocast=self._mixed)
            self._step.rehearses = not self._own
        # Lightning counts the steps of its own optimiser wrappers, and checkpoints by that count
        counted = self.trainer.fit_loop.epoch_loop.manual_optimization.optim_step_progress
        self.parts.begin("kernels")
        before, began = self._made(), time.perf_counter()
        for _loss in self._step.run(batch):
            counted.increment_ready()
            counted.increment_completed()
            made, now = self._made(), time.perf_counter()
            if made != before:  # run for the first time, or captured, where all others are replayed
                self.parts.add("kernels", now - began)
            before, began = made, now
        return None

    def _made(self) -> tuple[int, int]:
        """What changes when a step runs for the first time or is captured; where none is captured, with the very first."""
        assert self._step is not None
        eager = self._step.eager_steps
        return eager if self._step.capture else min(eager, 1), self._step.num_captured

    def on_after_backward(self) -> None:
        if self.trainer.world_size > 1:
            check_learnt(self.model, self.trainer.world_size)

    def on_train_epoch_end(self) -> None:
        self._after_first()
        schedule: Any = self.lr_schedulers()
        if isinstance(schedule, Plateau):
            schedule.step(self._valid)
        elif self.graphed:
            schedule.step()
        loss = self.objective.mean()
        self.log("train/loss", loss, prog_bar=True, sync_dist=True)
        fine = all(math.isfinite(row["loss"]) for row in self.curve)
        self.curve.append({"epoch": self.current_epoch, "lr": self._lr, "loss": loss, "score": self._valid})
        if fine and not math.isfinite(loss) and self.trainer.is_global_zero:  # classes are predicted and scored all the same
            tell(f"{self.config.name}: the loss is {loss} in epoch {self.current_epoch}: what follows has learnt nothing.")
        if self.csv is not None and self.trainer.is_global_zero:
            write_csv(self.csv, self.curve)

    def lr_scheduler_step(self, scheduler: Any, metric: Any) -> None:
        """Lightning steps plateaus after checkpoints have been written, so a resumed run would miss one: done above."""
        if not isinstance(scheduler, Plateau):
            scheduler.step()

    def validation_step(self, batch: Batch, _: int) -> None:
        if isinstance(batch, Plan):
            self._scored(self.valid_score, batch)
            return
        if self._forward is None:
            self._forward = GraphedForward(self.model, autocast=self._mixed)
            self._forward.rehearses = not self._own
        for packed in batch:
            self._found.append(self._forward(packed))
            self._of.append(packed.graphs)

    def on_validation_epoch_end(self) -> None:
        if self._found:  # once for all batches: every update of a metric waits for the device
            y = self.labels[torch.from_numpy(np.concatenate(self._of))]
            logits = torch.cat(self._found)
            self.valid_score.update(logits, self.objective.scaled(y.to(logits.device)))
            self._found, self._of = [], []
        self._valid = float(self.valid_score.compute())
        self.valid_score.reset()
        self.log("valid/score", self._valid, prog_bar=True, sync_dist=True)

    def teardown(self, stage: str) -> None:
        if self._step is not None:
            self.steps = {"captured graphs": self._step.num_captured, "eager steps": self._step.eager_steps}
        self._step = self._forward = None  # Lightning moves the weights, which captured graphs do not see

    def test_step(self, plan: Plan, _: int) -> None:
        with torch.autocast(self.device.type, self._mixed or torch.bfloat16, enabled=self._mixed is not None):
            self._scored(self.test_score, plan)

    def on_test_epoch_end(self) -> None:
        self.log("test/score", float(self.test_score.compute()), sync_dist=True)
        self.test_score.reset()

    def configure_optimizers(self) -> dict[str, Any]:  # type: ignore[override]
        optimiser = make_adam(self.config, self.model, captured=self.graphed and self.device.type == "cuda")
        schedule = make_schedule(self.config, optimiser, self.problem.metric)
        watched = {"monitor": "valid/score"} if isinstance(schedule, Plateau) else {}
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "epoch", **watched}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        from enfa import __version__

        as_numbers(checkpoint)
        checkpoint["enfa"] = {
            "format": FORMAT,
            "version": __version__,
            "config": self.config.to_dict(),
            "data": self.data,
            "code": code_of_run(self.config),
            "problem": self.problem.to_dict(),
            "curve": self.curve,
            "seconds": self.seconds,
        }

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.curve, self._earlier = list(checkpoint["enfa"]["curve"]), checkpoint["enfa"]["seconds"]
