"""The loss, and the metrics as OGB's evaluator defines them. Entries that were not measured (NaN) count nowhere."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.utilities import dim_zero_cat

__all__ = ["TaskMean", "make_metric", "summed_loss"]


def summed_loss(logits: Tensor, y: Tensor, task: str) -> tuple[Tensor, Tensor]:
    """The loss summed over all measured labels, and how many these are. The loss of a batch is their quotient.

    ``"multiclass"``: logits [G, C], y int64 [G], cross entropy. ``"binary"``: logits, y [G, T], binary cross entropy.
    """
    if task == "multiclass":
        return F.cross_entropy(logits, y, reduction="sum"), torch.full((), float(len(y)), device=y.device)
    measured = ~y.isnan()
    each = F.binary_cross_entropy_with_logits(logits, y.nan_to_num().to(logits.dtype), reduction="none")
    return (each * measured).sum(), measured.sum().float()


def _ranks(scores: Tensor) -> Tensor:
    """Scores as ranks from 0 to 1, ties kept. torchmetrics would put logits through a sigmoid, which makes ties."""
    values, rank = torch.unique(scores, return_inverse=True)
    return rank.double() / max(len(values) - 1, 1)


def _task_score(metric: str, scores: Tensor, y: Tensor) -> float | None:
    """One task's score, or None where it has none: ROC-AUC needs both classes, average precision a positive."""
    positive = int((y == 1).sum())
    if metric == "accuracy":
        return float(((scores > 0) == (y > 0)).double().mean()) if len(y) else None
    if not positive or (metric == "rocauc" and positive == len(y)):
        return None
    if metric == "ap":
        return float(binary_average_precision(_ranks(scores), y.long()))
    return float(binary_auroc(_ranks(scores), y.long()))


class Accuracy(MulticlassAccuracy):
    """The share of graphs whose class is right. Unlike its parent it takes a rank's empty part of a batch."""

    def update(self, preds: Tensor, target: Tensor) -> None:
        if len(target):
            super().update(preds, target)


class TaskMean(Metric):
    """ROC-AUC, average precision or accuracy of each yes/no task, averaged over the tasks that have one."""

    full_state_update = False
    higher_is_better = True
    scores: list[Tensor]
    targets: list[Tensor]

    def __init__(self, metric: str, **options: Any) -> None:
        super().__init__(**options)
        self.metric = metric
        self.add_state("scores", default=[], dist_reduce_fx="cat")
        self.add_state("targets", default=[], dist_reduce_fx="cat")

    def update(self, scores: Tensor, targets: Tensor) -> None:
        self.scores.append(scores.detach())
        self.targets.append(targets)

    def compute(self) -> Tensor:
        scores, targets = dim_zero_cat(self.scores).cpu(), dim_zero_cat(self.targets).cpu()
        found = []
        for column in range(targets.shape[1]):
            measured = ~targets[:, column].isnan()
            found.append(_task_score(self.metric, scores[measured, column], targets[measured, column]))
        each = [score for score in found if score is not None]
        if not each:
            raise ValueError(f"No task of this split has positive and negative labels: {self.metric} is not defined")
        return torch.tensor(sum(each) / len(each), dtype=torch.float64)


def make_metric(metric: str, task: str, num_outputs: int) -> Metric:
    if task == "multiclass":
        return Accuracy(num_outputs, average="micro", validate_args=False)  # labels have been checked
    return TaskMean(metric)
