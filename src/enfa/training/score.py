"""Losses, and metrics: those of yes/no tasks as OGB's evaluator defines them. What was not measured (NaN) counts nowhere."""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torchmetrics import Metric
from torchmetrics.classification import MulticlassAccuracy
from torchmetrics.functional.classification import binary_auroc, binary_average_precision
from torchmetrics.utilities import dim_zero_cat

__all__ = ["TargetMean", "TaskMean", "make_metric", "summed_loss"]


def summed_loss(logits: Tensor, y: Tensor, task: str, loss: str | None = None) -> tuple[Tensor, Tensor]:
    """The loss summed over all measured labels, and how many these are. The loss of a batch is their quotient.

    ``"multiclass"``: logits [G, C], y int64 [G], cross entropy. ``"binary"``: logits, y [G, T], binary cross entropy.
    ``"regression"``: the same shapes; ``loss`` is ``"l1"`` (absolute errors) or ``"mse"`` (squared ones).
    """
    if task == "multiclass":
        return F.cross_entropy(logits, y, reduction="sum"), torch.full((), float(len(y)), device=y.device)
    if logits.shape != y.shape:
        raise ValueError(f"Expected outputs of the labels' shape {list(y.shape)}, got {list(logits.shape)}")
    measured = ~y.isnan()
    if task == "regression":
        error = logits - y.nan_to_num().to(logits.dtype)
        each = error.abs() if loss == "l1" else error.square()
        # not a product: what was not measured may be anything here, in the rows that pad a batch
        return torch.where(measured, each, torch.zeros_like(each)).sum(), measured.sum().float()
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


class _Columns(Metric):
    """Keeps all predictions and labels; scores every column of them, and averages over those that have a score."""

    full_state_update = False
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
            found.append(self.score(scores[measured, column], targets[measured, column]))
        each = [score for score in found if score is not None]
        if not each:
            raise ValueError(f"No task of this split has {self.asks}: {self.metric} is not defined")
        return torch.tensor(sum(each) / len(each), dtype=torch.float64)

    asks = ""  # of the labels of a task, to be scored

    def score(self, scores: Tensor, y: Tensor) -> float | None:
        raise TypeError(f"{type(self).__name__} must define score")


class TaskMean(_Columns):
    """ROC-AUC, average precision or accuracy of each yes/no task, averaged over the tasks that have one."""

    higher_is_better = True
    asks = "positive and negative labels"

    def score(self, scores: Tensor, y: Tensor) -> float | None:
        return _task_score(self.metric, scores, y)


class TargetMean(_Columns):
    """Mean absolute error, mean squared error or R² of each target, averaged over the targets that have one."""

    asks = "enough measured labels"

    def score(self, scores: Tensor, y: Tensor) -> float | None:
        scores, y = scores.double(), y.double()
        if not len(y):
            return None
        if self.metric == "mae":
            return float((scores - y).abs().mean())
        if self.metric == "mse":
            return float((scores - y).square().mean())
        spread = float((y - y.mean()).square().sum())
        return 1.0 - float((scores - y).square().sum()) / spread if spread else None


def make_metric(metric: str, task: str, num_outputs: int) -> Metric:
    if task == "regression":
        return TargetMean(metric)
    if task == "multiclass":
        return Accuracy(num_outputs, average="micro", validate_args=False)  # labels have been checked
    return TaskMean(metric)
