"""The command line: ``enfa COMMAND``, one file per command."""

import warnings
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
    app()
