"""The commands of ``enfa``, and what a user's mistake looks like.

To add a command, write it as a function of its name, in a file of its name, and list it below.
"""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperCommand, TyperGroup

from enfa import __version__
from enfa.own_code import name_code, place

__all__ = ["app"]

# Name: the folder of its file, and what it does. A file is imported when its command is called: PyTorch takes seconds.
COMMANDS = {
    "brec": ("studies", "Train a network for every pair of BREC, and test whether it tells the pair apart."),
    "compile": ("data", "Compile a dataset of any size, shard by shard, into a folder or URL."),
    "convert": ("data", "Write CSV, JSON lines or Parquet files as one .npz file of graphs."),
    "demo": ("studies", "The whole idea in half a minute, on graphs made here."),
    "explain": ("training", "Which atoms or nodes a prediction comes from: a picture, and JSON."),
    "inspect": ("studies", "What the bags of a dataset cost, and what is shared, before any training."),
    "power": ("studies", "Which graphs some weights of a model class tell apart; nothing is trained."),
    "predict": ("training", "Predict with a trained model: a CSV file with a line per graph."),
    "table": ("training", "Print all results beside the paper's numbers."),
    "test": ("training", "Score a trained model on the test graphs of its split."),
    "sweep": ("training", "Train every fold with every seed, and print mean and standard deviation."),
    "train": ("training", "Train one model."),
    "warmup": ("training", "Compile and keep the kernels that training with some configs needs."),
    "reproduce": ("studies", "Measure storage, time, exactness and accuracy, and write a report."),
    "storage": ("studies", "Bytes of the bags on disk: conventional, as ego nets, and as distinct rows."),
}

# what the package raises for wrong input, and for an extra that is not installed; and what the system does, for a full disk or
# a folder that may not be written
MISTAKES = (ValueError, TypeError, OSError, ImportError)


def _command(name: str) -> Any:
    """A command, out of its file: its function, and what stands below its help."""
    file = import_module(f"enfa.cli.{COMMANDS[name][0]}.{name}")
    alone = typer.Typer(add_completion=False)
    alone.command(name, epilog=getattr(file, "EPILOG", None))(getattr(file, name))
    return typer.main.get_command(alone)


def _name_setting(error: Any) -> None:
    """Say of an unknown option that it is a setting, where it is one. ``error`` is click's; typer may have its own copy."""
    option, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if option is None or context is None or not any(param.name in ("overrides", "configs") for param in context.command.params):
        return
    meant = [opt for param in context.command.params for opt in param.opts if option == f"{opt}s"]
    if meant:  # --targets is a setting, too
        error.possibilities = meant
        return
    from dataclasses import fields

    from enfa.training.settings.config import Config

    name = option.lstrip("-").replace("-", "_")
    if name in {field.name for field in fields(Config)}:
        error.message, error.possibilities = f"No such option: {option}. It is a setting: {name}=VALUE", None


class _Group(TyperGroup):
    """Imports the command that is called. Shows a user's mistake as one line and exits with 2, as for a misspelt option."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:
        """``--code FILE`` and ``--debug`` may stand after the command, too; behind ``--`` nothing is an option."""
        moved: list[str] = []
        rest: list[str] = []
        left = iter(args)
        for arg in left:
            if arg == "--":
                rest += [arg, *left]
            elif arg == "--code":
                moved += [arg, *islice(left, 1)]
            else:
                (moved if arg == "--debug" or arg.startswith("--code=") else rest).append(arg)
        return super().parse_args(ctx, moved if moved[-1:] == ["--code"] else [*moved, *rest])  # which says that FILE lacks

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *super().list_commands(ctx)]

    def get_command(self, ctx: Any, name: str) -> Any:
        """As ``enfa --help`` lists it."""
        return TyperCommand(name, help=COMMANDS[name][1]) if name in COMMANDS else super().get_command(ctx, name)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        try:
            name, command, rest = super().resolve_command(ctx, args)
        except Exception as error:  # click's, of which typer may have its own copy
            close = get_close_matches(args[0], COMMANDS, n=1)
            if close and hasattr(error, "message"):
                error.message += f" Did you mean {close[0]!r}?"
            raise
        return name, _command(name) if name in COMMANDS else command, rest

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except Exception as error:
            where = place(error)  # of whatever kind it is, where the user's own code runs
            if isinstance(error, BrokenPipeError) or not (where or isinstance(error, MISTAKES)):  # click ends the first quietly
                _name_setting(error)
                raise
            if ctx.params.get("debug"):
                raise
            line = " ".join(str(error).split()) or type(error).__name__
            if isinstance(error, OSError) and error.filename is not None:
                line = f"{error.filename}: {error.strerror}"
            if where:
                line = f"{where}: {type(error).__name__}: {line} (--debug shows the traceback)"
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
    code: Annotated[
        list[str] | None,
        typer.Option(
            "--code",
            metavar="FILE",
            help="A Python file of your own, which is run: its models, policies and convs can be named by their classes.",
        ),
    ] = None,
) -> None:
    """Subgraph GNNs made cheap without changing a single output."""
    if code:
        name_code(code)
