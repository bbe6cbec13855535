"""Importing a script that is in no package."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType


def from_file(path: Path) -> ModuleType:
    name = f"script_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for it
    spec.loader.exec_module(module)
    return module
