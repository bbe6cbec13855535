"""What a run came to: the JSON that results are made of."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass, field, fields
from typing import TYPE_CHECKING, Any

import torch

from enfa.training.metrics import best_of, in_units, reached
from enfa.training.settings.code import code_of_run
from enfa.training.settings.config import Config

if TYPE_CHECKING:
    from enfa.training.loop.module import TrainingModule

__all__ = ["Record", "hardware"]

NEW = ("parts", "data", "std", "targets", "validated_on", "code")  # what older files lack


def hardware(device: torch.device) -> str:
    """The machine in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    name = platform.processor() or platform.machine()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            name = next((line.split(":", 1)[1].strip() for line in file if line.startswith("model name")), name)
    except OSError:
        pass
    return f"{name}, {torch.get_num_threads()} of {os.cpu_count()} cores"


@dataclass(frozen=True)
class Record:
    """One finished run."""

    config: dict[str, Any]
    seed: int
    fold: int
    metric: str
    ended: str  # "all epochs", "early stopping", "target reached" or "out of time"
    epochs: int  # that were run
    loss: list[float]  # of every epoch
    score: list[float]  # validation, of every epoch
    best_epoch: int
    valid: float  # validation score there
    test: float | None  # test score there; None where validation is on the test fold
    version: str
    torch: str
    hardware: str
    seconds: float
    parts: dict[str, float] = field(default_factory=dict)  # seconds of each part of this process (parts.NAMES)
    data: str | None = None  # fingerprint of the file that was learnt from, where it is one's own
    std: list[float] | None = None  # of numbers that were standardised, so that errors are in these
    targets: list[str] | None = None
    validated_on: str | None = None  # "test fold", "next fold", or "valid": a part that the split has for it
    code: dict[str, str] | None = None  # fingerprints of the user's own files that it is made of

    @classmethod
    def of(
        cls, config: Config, module: TrainingModule, test: float | None, seconds: float, where: str, late: bool,
        validated_on: str,
    ) -> Record:  # fmt: skip
        from enfa import __version__

        score = [row["score"] for row in module.curve]
        metric = module.problem.metric
        best = best_of(metric, score)
        ended = "all epochs"
        if len(score) < config.epochs:
            ended = "early stopping"
            if config.stop_at is not None and reached(metric, score[-1], config.stop_at):
                ended = "target reached"
            elif late:
                ended = "out of time"
        return cls(
            config.to_dict(), config.seed, config.fold, metric, ended, len(score),
            [row["loss"] for row in module.curve], score, best, score[best], test, __version__, torch.__version__, where,
            round(seconds, 1), module.parts.to_dict(), module.data, module.problem.std, module.problem.targets,
            validated_on, code_of_run(config),
        )  # fmt: skip

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Record:
        return cls(**{f.name: values[f.name] for f in fields(cls) if f.name not in NEW or f.name in values})

    def units(self, score: float) -> str:
        """What stands behind a score, where it is not in the units of the data."""
        return in_units(self.metric, self.std, self.targets)(score)

    def to_dict(self) -> dict[str, Any]:
        rounded = {"loss": [round(v, 6) for v in self.loss], "score": [round(v, 6) for v in self.score]}
        found = {**asdict(self), **rounded}
        return {name: value for name, value in found.items() if value is not None or name not in NEW}
