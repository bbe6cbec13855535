"""Several seeds of one config, in one folder."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from enfa.datasets import Benchmark
from enfa.training.disk import write_json
from enfa.training.results.done import record_of
from enfa.training.results.record import Record
from enfa.training.run import fit
from enfa.training.settings.config import Config
from enfa.training.settings.folder import LAST, MEMBERS, check_places, folder_of

__all__ = ["fit_ensemble"]


def fit_ensemble(
    config: Config,
    count: int,
    *,
    resume: bool = False,
    progress: bool = True,
    data: Benchmark | None = None,
    report: Callable[[Config, Record], None] | None = None,
) -> Path:
    """Train ``count`` models on the same split, with seeds from the config's on, and return the folder that ``enfa predict``
    takes: OUT/NAME. With ``resume``, those that are done are kept, and one that was interrupted goes on."""
    if count < 2:
        raise ValueError(f"Expected an ensemble of at least 2 models, got {count}")
    configs = [replace(config, seed=config.seed + k) for k in range(count)]
    folder = folder_of(config).parent
    if not resume:
        check_places(configs)
    for each in configs:
        record = record_of(each) or fit(each, resume=(folder_of(each) / LAST).exists(), progress=progress, data=data)
        if record is not None and report is not None:
            report(each, record)
    write_json(folder / MEMBERS, {"runs": [folder_of(each).name for each in configs]})
    return folder
