"""What a command tells of a mistake."""

from typer.testing import CliRunner

from enfa.cli.app import app

__all__ = ["run"]


def run(*words: object) -> str:
    """The last line on standard error; nothing where the command did what it was asked to."""
    result = CliRunner().invoke(app, [*map(str, words)])
    lines = result.stderr.splitlines()
    assert result.exit_code in (0, 2) and "Traceback" not in result.output, result.output
    return lines[-1] if result.exit_code else ""
