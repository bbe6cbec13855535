"""The command line: ``enfa COMMAND``, one file per command."""

import atexit
import os
import sys
import threading
import warnings
from contextlib import suppress
from pathlib import Path
from typing import Any

from enfa.cli.app import app

__all__ = ["main"]


def main() -> None:
    """The ``enfa`` console script."""
    package, written = str(Path(__file__).parents[1]), warnings.formatwarning

    def formatted(message: Any, category: Any, filename: str, *where: Any, **more: Any) -> str:
        """One line of ours; those of other packages as ever."""
        ours = filename.startswith(package)
        return f"Warning: {message}\n" if ours else written(message, category, filename, *where, **more)

    warnings.formatwarning = formatted
    try:
        app()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _leave(end.code or 0)
        raise


def _leave(code: int) -> None:
    """End this process, where it has used a GPU: taking captured graphs and PyTorch down first takes Python two seconds."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        threading._shutdown()  # type: ignore[attr-defined] # waits for threads, as Python does
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            with suppress(BrokenPipeError, ValueError):  # one that nothing reads any more, or that is closed
                stream.flush()
        os._exit(code)
