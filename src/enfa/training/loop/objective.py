"""What is differentiated: the labels, the outputs checked against them, and their loss, whose sum over an epoch is kept."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torchmetrics import SumMetric

from enfa.nn.rooted import root_nodes
from enfa.plan.table import Plan
from enfa.training.problem import Problem
from enfa.training.score import summed_loss
from enfa.training.settings.config import Config

__all__ = ["Objective"]


class Objective(nn.Module):
    label_mean: Tensor | None
    label_std: Tensor | None

    def __init__(self, config: Config, problem: Problem, scales: bool) -> None:
        """``scales``: labels are as they stand in a file, and are to be standardised here, so that what is compiled is the same
        for all folds, which have other training graphs."""
        super().__init__()
        if config.loss is not None and problem.task != "regression":
            raise ValueError(f"Expected no loss={config.loss} where labels are no numbers, got a {problem.task} task")
        self.config, self.problem = config, problem
        self.name = config.loss or ("l1" if problem.metric == "mae" else "mse")
        for name, values in (("label_mean", problem.mean), ("label_std", problem.std)):
            found = None if values is None or not scales else torch.tensor(values, dtype=torch.float64)
            self.register_buffer(name, found, persistent=False)  # the problem has them
        # two sums rather than a mean: MeanMetric forgets its weights when it does not look for NaN
        self.losses, self.counts = (SumMetric(nan_strategy="disable").set_dtype(torch.float64) for _ in range(2))
        self._sums: Tensor | None = None  # of the loss and of the labels, in this epoch

    def labels_of(self, plan: Plan) -> Tensor:
        """A row for each output: of graphs or nodes, or of the nodes that subgraphs have as their roots."""
        assert plan.y is not None
        if self.problem.level != "node" or self.config.readout != "root":
            return plan.y
        roots = root_nodes(plan)  # type: ignore[arg-type]
        if roots.ndim != 1:
            raise ValueError(f"Expected a policy whose roots are nodes, as labels are those of nodes, got {self.config.policy}")
        return plan.y.index_select(0, roots)

    def scaled(self, y: Tensor) -> Tensor:
        """Labels in the units in which the model learns."""
        if self.label_mean is None or self.label_std is None:
            return y
        return ((y.double() - self.label_mean) / self.label_std).to(y.dtype)

    def forward(self, logits: Any, y: Tensor) -> Tensor:
        """The mean loss of a batch.

        One process divides by the measured labels of the whole batch. Ranks must divide by all ranks' labels too, and
        multiply by their number, because DistributedDataParallel averages gradients where it should add.
        """
        self._check_outputs(logits, y)
        logits = logits.float() if logits.dtype in (torch.bfloat16, torch.float16) else logits
        total, count = summed_loss(logits, self.scaled(y), self.problem.task, self.name)
        if self._sums is None or self._sums.device != total.device:
            self._sums = torch.zeros(2, dtype=torch.float64, device=total.device)
        self._sums += torch.stack([total.detach().double(), count.double()])
        ranks = 1
        if dist.is_available() and dist.is_initialized():
            ranks = dist.get_world_size()
            count = count.clone()
            dist.all_reduce(count)
        return total * ranks / count.clamp(min=1)

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

    def begin(self) -> None:
        """Of an epoch. In place: captured steps add to these sums."""
        if self._sums is not None:
            self._sums.zero_()

    def mean(self) -> float:
        """The loss of all labels in the epoch that has ended, over all ranks."""
        for metric, total in zip((self.losses, self.counts), () if self._sums is None else self._sums):
            metric.set_dtype(torch.float64)  # which a trainer's own precision has changed
            metric.update(total)
        mean = float(self.losses.compute()) / max(float(self.counts.compute()), 1.0)
        self.losses.reset()
        self.counts.reset()
        return mean
