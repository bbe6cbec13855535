import numpy as np
import pytest
import torch
from torch import Tensor

from enfa.training.score import TaskMean, make_metric, summed_loss


def tasks(seed: int, graphs: int = 60, count: int = 5) -> tuple[Tensor, Tensor]:
    """Logits with ties and large values, labels with gaps, and one task without positives."""
    rng = np.random.default_rng(seed)
    logits = np.round(rng.normal(size=(graphs, count)) * 40)
    y = (rng.random((graphs, count)) < 0.3).astype(np.float32)
    y[rng.random(y.shape) < 0.25] = np.nan
    y[:, 2] = np.where(np.isnan(y[:, 2]), np.nan, 0)
    return torch.from_numpy(logits).float(), torch.from_numpy(y)


@pytest.mark.parametrize("metric", ["rocauc", "ap"])
@pytest.mark.parametrize("seed", range(5))
def test_as_ogb_evaluates(metric: str, seed: int) -> None:
    sklearn = pytest.importorskip("sklearn.metrics")
    score = {"rocauc": sklearn.roc_auc_score, "ap": sklearn.average_precision_score}[metric]
    logits, y = tasks(seed)
    expected = []
    for column in range(y.shape[1]):
        known = ~y[:, column].isnan()
        labels = y[known, column].numpy()
        if (labels == 1).any() and (labels == 0).any():
            expected.append(score(labels, logits[known, column].numpy()))
    assert len(expected) == y.shape[1] - 1
    found = TaskMean(metric)
    for part in range(0, len(y), 7):
        found.update(logits[part : part + 7], y[part : part + 7])
    assert float(found.compute()) == pytest.approx(np.mean(expected), abs=1e-6)


def test_logits_beyond_what_a_sigmoid_tells_apart_are_no_ties() -> None:
    found = TaskMean("rocauc")
    found.update(torch.tensor([[200.0], [300.0]]), torch.tensor([[0.0], [1.0]]))
    assert float(found.compute()) == 1.0


def test_no_task_with_both_classes_is_an_error() -> None:
    found = TaskMean("rocauc")
    found.update(torch.zeros(3, 1), torch.ones(3, 1))
    with pytest.raises(ValueError, match="rocauc is not defined"):
        found.compute()


def test_accuracy() -> None:
    found = make_metric("accuracy", "multiclass", 3)
    found.update(torch.eye(3)[[0, 1, 2, 2]], torch.tensor([0, 1, 2, 1]))
    assert float(found.compute()) == 0.75


def test_loss_ignores_what_was_not_measured() -> None:
    logits, y = tasks(0)
    logits.requires_grad_()
    total, count = summed_loss(logits, y, "binary")
    known = ~y.isnan()
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits[known], y[known])
    torch.testing.assert_close(total / count, expected)
    total.backward()
    assert logits.grad is not None and bool((logits.grad[~known] == 0).all()) and bool(logits.grad.isfinite().all())


def test_loss_of_no_graphs_is_zero() -> None:
    for y, task in ((torch.zeros(0, dtype=torch.int64), "multiclass"), (torch.zeros(0, 3), "binary")):
        total, count = summed_loss(torch.zeros(0, 3, requires_grad=True), y, task)
        assert float(total.detach()) == 0.0 and float(count) == 0.0
