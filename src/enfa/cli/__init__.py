"""The command line: ``enfa COMMAND``, one file per command."""

from enfa.cli.app import app

__all__ = ["main"]


def main() -> None:
    """The ``enfa`` console script."""
    app()
