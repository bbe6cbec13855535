"""The Lightning module. Importing this file needs Lightning (the extra ``enfa[train]``)."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor
from torchmetrics import SumMetric

from enfa.batch.static.packed import Packed
from enfa.nn.cuda.captured import GraphedForward
from enfa.nn.cuda.step import Step
from enfa.nn.rooted import root_nodes
from enfa.plan.derived.pack import pack, unpack
from enfa.plan.derived.prepare import lean, prepare
from enfa.plan.table import Plan
from enfa.training.build import Problem, make_model
from enfa.training.checkpoint import FORMAT
from enfa.training.disk import write_csv
from enfa.training.loop.graphed import uses_graphs
from enfa.training.loop.lightning import pl
from enfa.training.loop.schedule import Plateau, make_schedule
from enfa.training.models import seed_all
from enfa.training.results.parts import Parts
from enfa.training.score import make_metric, summed_loss
from enfa.training.settings.code import code_of_run, of_own_code
from enfa.training.settings.config import Config
from enfa.training.settings.folder import fingerprint
from enfa.training.settings.freeze import frozen_modules
from enfa.training.unread import tell

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

    label_mean: Tensor | None
    label_std: Tensor | None

    def __init__(self, config: Config, problem: Problem, scales: bool = False) -> None:
        """``scales``: labels are as they stand in a file, and are to be standardised here, so that what is compiled is the same
        for all folds, which have other training graphs."""
        super().__init__()
        self.config, self.problem = config, problem
        for name, values in (("label_mean", problem.mean), ("label_std", problem.std)):
            found = None if values is None or not scales else torch.tensor(values, dtype=torch.float64)
            self.register_buffer(name, found, persistent=False)  # the problem has them
        self.model = make_model(config, problem)
        self._frozen = tuple(frozen_modules(self.model, config.freeze))
        for module in self._frozen:
            module.requires_grad_(False)
        self.loss_name = config.loss or ("l1" if problem.metric == "mae" else "mse")
        if config.loss is not None and problem.task != "regression":
            raise ValueError(f"Expected no loss={config.loss} where labels are no numbers, got a {problem.task} task")
        make = (problem.metric, problem.task, problem.num_outputs)
        # two sums rather than a mean: MeanMetric forgets its weights when it does not look for NaN
        self.train_loss, self.train_labels = (SumMetric(nan_strategy="disable").set_dtype(torch.float64) for _ in range(2))
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
        self._sums: Tensor | None = None  # of the loss and of the labels, in this epoch
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
        """What to differentiate.

        One process divides by the measured labels of the whole batch. Ranks must divide by all ranks' labels too, and
        multiply by their number, because DistributedDataParallel averages gradients where it should add.
        """
        return self.mean_loss(self.model(plan), self.labels_of(plan))

    def _check_outputs(self, logits: Any, y: Tensor) -> None:
        """A model of the user's own may give anything: of too few classes a GPU would not say which."""
        expected = [len(y), self.problem.num_outputs]
        if not isinstance(logits, Tensor) or list(logits.shape) != expected:
            got = list(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            of = {"multiclass": "classes", "binary": "tasks", "regression": "targets"}[self.problem.task]
            raise ValueError(
                f"Expected outputs of shape {expected} from {self.config.model}, a row for each of the labels and a column for "
                f"each of the {of}, got {got}"
            )

    def _scaled(self, y: Tensor) -> Tensor:
        """Labels in the units in which the model learns."""
        if self.label_mean is None or self.label_std is None:
            return y
        return ((y.double() - self.label_mean) / self.label_std).to(y.dtype)

    def labels_of(self, plan: Plan) -> Tensor:
        """A row for each output: of graphs or nodes, or of the nodes that subgraphs have as their roots."""
        assert plan.y is not None
        if self.problem.level != "node" or self.config.readout != "root":
            return plan.y
        roots = root_nodes(plan)  # type: ignore[arg-type]
        if roots.ndim != 1:
            raise ValueError(f"Expected a policy whose roots are nodes, as labels are those of nodes, got {self.config.policy}")
        return plan.y.index_select(0, roots)

    def mean_loss(self, logits: Tensor, y: Tensor) -> Tensor:
        self._check_outputs(logits, y)
        logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        total, count = summed_loss(logits, self._scaled(y), self.problem.task, self.loss_name)
        if self._sums is None or self._sums.device != total.device:
            self._sums = torch.zeros(2, dtype=torch.float64, device=total.device)
        self._sums += torch.stack([total.detach().double(), count.double()])
        ranks = 1
        if dist.is_available() and dist.is_initialized():
            ranks = dist.get_world_size()
            count = count.clone()
            dist.all_reduce(count)
        return total * ranks / count.clamp(min=1)

    def transfer_batch_to_device(self, batch: Batch, device: torch.device, dataloader_idx: int) -> Batch:
        return moved(batch, device) if isinstance(batch, Plan) and device.type != "cpu" else batch

    def on_train_epoch_start(self) -> None:
        self._seed()
        # a rate on the GPU is a float32
        self._lr = float(f"{float(self.trainer.optimizers[0].param_groups[0]['lr']):.7g}")
        if self._sums is not None:
            self._sums.zero_()

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
            self._step = Step(self.model, optimiser, self.mean_loss, autocast=self._mixed)
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
        return eager if self._step.capture else min(eager, 1), sum(graph is not None for graph in self._step.captured.values())

    def on_train_epoch_end(self) -> None:
        self._after_first()
        schedule: Any = self.lr_schedulers()
        if isinstance(schedule, Plateau):
            schedule.step(self._valid)
        elif self.graphed:
            schedule.step()
        if self._sums is not None:
            for metric, total in zip((self.train_loss, self.train_labels), self._sums):
                metric.set_dtype(torch.float64)  # which a trainer's own precision has changed
                metric.update(total)
        loss = float(self.train_loss.compute()) / max(float(self.train_labels.compute()), 1.0)
        self.train_loss.reset()
        self.train_labels.reset()
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
            self.valid_score.update(self.model(batch), self._scaled(self.labels_of(batch)))
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
            self.valid_score.update(logits, self._scaled(y.to(logits.device)))
            self._found, self._of = [], []
        self._valid = float(self.valid_score.compute())
        self.valid_score.reset()
        self.log("valid/score", self._valid, prog_bar=True, sync_dist=True)

    def teardown(self, stage: str) -> None:
        if self._step is not None:
            graphs = sum(graph is not None for graph in self._step.captured.values())
            self.steps = {"captured graphs": graphs, "eager steps": self._step.eager_steps}
        self._step = self._forward = None  # Lightning moves the weights, which captured graphs do not see

    def test_step(self, plan: Plan, _: int) -> None:
        with torch.autocast(self.device.type, self._mixed or torch.bfloat16, enabled=self._mixed is not None):
            self.test_score.update(self.model(plan), self._scaled(self.labels_of(plan)))

    def on_test_epoch_end(self) -> None:
        self.log("test/score", float(self.test_score.compute()), sync_dist=True)
        self.test_score.reset()

    def configure_optimizers(self) -> dict[str, Any]:  # type: ignore[override]
        c = self.config
        captured: dict[str, Any] = {}
        if self.graphed and self.device.type == "cuda":
            captured = {"fused": True, "capturable": True}
        # a rate that a captured step is to follow has to be a tensor from the start: schedulers then change it in place
        lr = torch.tensor(c.lr, device=self.device) if captured else c.lr
        learnt = [p for p in self.model.parameters() if p.requires_grad]
        optimiser = torch.optim.Adam(learnt, lr=lr, weight_decay=c.weight_decay, **captured)
        schedule = make_schedule(c, optimiser, self.problem.metric)
        watched = {"monitor": "valid/score"} if isinstance(schedule, Plateau) else {}
        return {"optimizer": optimiser, "lr_scheduler": {"scheduler": schedule, "interval": "epoch", **watched}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        from enfa import __version__

        # numbers, whatever they are here: a run may be resumed in another way
        for state in checkpoint.get("optimizer_states", ()):
            for group in state["param_groups"]:
                group |= {name: float(group[name]) for name in ("lr", "initial_lr") if name in group}
                group |= {"capturable": False, "fused": None}
        for state in checkpoint.get("lr_schedulers", ()):
            for name in {"base_lrs", "_last_lr"} & state.keys():
                state[name] = [float(lr) for lr in state[name]]
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
