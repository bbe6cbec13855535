"""Training's imports, without what other packages would import along.

PyG and torchmetrics look for packages that parts of them could use (language models, pictures, sounds), and import those that
are there: four seconds of a start, where many are installed, and a run here uses none of them. So while this process imports
the two, they are told that these are not there. It is a process that ends with its run; ``import enfa`` does no such thing.
"""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from importlib import import_module
from threading import Thread
from typing import Any

from enfa.cli.training.dynamo import without_dynamo

__all__ = ["import_training"]

TRIED = ("transformers", "pandas")  # by PyG, which goes on without
ASKED = ("transformers", "scipy", "matplotlib", "torchvision", "torchaudio")  # by torchmetrics, whether they are there


@contextmanager
def _hidden() -> Iterator[None]:
    imports: Any = import_module("lightning_utilities.core.imports")
    cls = imports.RequirementCache
    tried = [name for name in TRIED if name not in sys.modules]
    met, available = cls.__bool__, imports.package_available

    hides = True  # until the end: modules that have imported these functions keep them

    def is_met(self: Any) -> bool:
        return re.split(r"[<>=!~\s]", self.requirement or "")[0] not in ASKED and met(self)

    def is_available(name: str) -> bool:
        return not (hides and name in ASKED) and available(name)

    cls.__bool__, imports.package_available = is_met, is_available
    sys.modules.update(dict.fromkeys(tried))  # type: ignore[arg-type] # None: an ImportError, as for a package that is not there
    try:
        yield
    finally:
        hides = False
        cls.__bool__, imports.package_available = met, available
        for name in tried:
            sys.modules.pop(name, None)


@contextmanager
def _collecting_later() -> Iterator[None]:
    """What is imported stays: looking through it for garbage, again and again, takes a fifth of the time, and later as well."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def _open_gpu() -> None:
    import torch

    with suppress(Exception):  # the run, which needs it, says what is wrong
        torch.empty(1, device="cuda")


def import_training(gpu: bool = False) -> None:
    """Import PyTorch, PyG, Lightning and torchmetrics. What fails here is imported again, or fails, where it is needed.

    ``gpu``: meanwhile begin to use one, which the driver takes a second for.
    """
    first = "torch" not in sys.modules  # else this process has had objects of its own
    with suppress(Exception), _collecting_later() if first else nullcontext(), _hidden():
        import_module("torch")
        without_dynamo()
        if gpu:
            Thread(target=_open_gpu, daemon=True).start()
        for name in ("torch_geometric.data", "torchmetrics.classification", "enfa.training.loop.lightning"):
            import_module(name)
