"""How the learning rate falls."""

import math

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LambdaLR, ReduceLROnPlateau, StepLR

from enfa.training.metrics import mode
from enfa.training.settings.config import Config

__all__ = ["Plateau", "Schedule", "make_schedule"]

Plateau = ReduceLROnPlateau
Schedule = ReduceLROnPlateau | StepLR | LambdaLR


def make_schedule(config: Config, optimiser: Optimizer, metric: str) -> Schedule:
    """Stepped once an epoch; a plateau with the validation score, of which it takes a relative change of 1e-4 for none."""
    c = config
    if c.schedule == "plateau":
        return ReduceLROnPlateau(optimiser, mode(metric), c.lr_decay, c.patience, min_lr=c.min_lr)  # type: ignore[arg-type]
    if c.schedule == "cosine":
        # each rate from the first, not from the one before, which is rounded where it is a float32 on a GPU
        least = c.min_lr / c.lr
        return LambdaLR(optimiser, lambda epoch: least + (1 - least) * (1 + math.cos(math.pi * epoch / c.epochs)) / 2)
    return StepLR(optimiser, c.lr_decay_every, c.lr_decay)
