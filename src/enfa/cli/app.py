"""The commands of ``enfa``, and what a user's mistake looks like.

To add a command, write it in a file of its own and register it at the end of this one.
"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from enfa import __version__
from enfa.cli.data.convert import convert
from enfa.cli.studies.brec import brec
from enfa.cli.studies.demo import demo
from enfa.cli.studies.inspect import inspect
from enfa.cli.studies.power import power
from enfa.cli.studies.reproduce import reproduce
from enfa.cli.studies.storage import storage
from enfa.cli.training.predict import predict
from enfa.cli.training.settings import SETTINGS
from enfa.cli.training.sweep import sweep
from enfa.cli.training.table import table
from enfa.cli.training.test import test
from enfa.cli.training.train import train

__all__ = ["app"]

# what the package raises for wrong input; and what the system does, for a full disk or a folder that may not be written
MISTAKES = (ValueError, TypeError, OSError)


class _Group(TyperGroup):
    """Shows a user's mistake as one line and exits with code 2, as for a misspelt option."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except MISTAKES as error:
            if ctx.params.get("debug") or isinstance(error, BrokenPipeError):  # which is no mistake: click ends quietly
                raise
            line = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, OSError) and error.filename is not None:
                line = f"{error.filename}: {error.strerror}"
            # Text, not markup: messages are full of [brackets]
            Console(stderr=True).print(Text(f"Error: {line}", style="bold red"), soft_wrap=True)
            ctx.exit(2)


app = typer.Typer(cls=_Group, no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"enfa {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Subgraph GNNs made cheap without changing a single output."""


app.command()(brec)
app.command()(convert)
app.command()(demo)
app.command()(inspect)
app.command()(power)
app.command()(predict)
app.command()(table)
app.command()(test)
app.command(epilog=SETTINGS)(sweep)
app.command(epilog=SETTINGS)(train)
app.command()(reproduce)
app.command()(storage)
