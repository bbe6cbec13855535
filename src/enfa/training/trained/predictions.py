"""What the outputs of a trained model say."""

from typing import Any

import torch
from torch import Tensor, nn

from enfa.training.problem import Problem

__all__ = ["predictions", "scaled"]


def scaled(outputs: Tensor, problem: Problem) -> Tensor:
    """As :func:`predictions`, of a known problem."""
    outputs = outputs.double().cpu()
    if problem.task == "regression":
        std, mean = (torch.tensor(v or [d], dtype=torch.float64) for v, d in ((problem.std, 1.0), (problem.mean, 0.0)))
        return outputs * std + mean
    return outputs.softmax(1) if problem.task == "multiclass" else outputs.sigmoid()


def predictions(model: nn.Module, outputs: Tensor) -> Tensor:
    """What outputs of a model from :func:`enfa.load` say, as ``enfa predict`` writes it: numbers in the units of the data, and
    probabilities of classes or of yes/no tasks, where the outputs are standardised numbers and logits. In float64, on the CPU.
    """
    task: Any = getattr(model, "task", None)
    if task is None:
        raise ValueError(
            f"Expected a model from enfa.load that enfa train has trained, which knows its task, got {type(model).__name__} "
            f"without one"
        )
    problem = Problem(**task["problem"])
    if outputs.shape[-1:] != (problem.num_outputs,) or outputs.ndim != 2:
        raise ValueError(f"Expected outputs of the model, of shape [rows, {problem.num_outputs}], got {list(outputs.shape)}")
    return scaled(outputs, problem)
