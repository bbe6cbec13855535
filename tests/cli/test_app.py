from collections.abc import Iterator

import pytest
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app


@pytest.fixture
def failing() -> Iterator[list[Exception]]:
    """A command ``fail`` that raises what the test puts into the list."""
    raised: list[Exception] = []
    before = list(app.registered_commands)

    @app.command()
    def fail() -> None:
        raise raised[0]

    yield raised
    app.registered_commands = before


def test_version() -> None:
    result = CliRunner().invoke(app, ["--version"])
    assert (result.exit_code, result.output) == (0, f"enfa {enfa.__version__}\n")


def test_no_arguments_show_the_commands() -> None:
    assert "demo" in CliRunner().invoke(app, []).output


def test_a_misspelt_command_is_told_the_one_that_was_meant() -> None:
    result = CliRunner().invoke(app, ["trian", "a.yaml"])
    assert result.exit_code == 2 and "No such command 'trian'. Did you mean 'train'?" in result.stderr
    assert "Did you mean" not in CliRunner().invoke(app, ["zzz"]).stderr


@pytest.mark.parametrize("error", [ValueError, TypeError, FileNotFoundError])
def test_a_mistake_is_one_line(failing: list[Exception], error: type[Exception]) -> None:
    message = "graph 3: Expected 'edge_index' of shape [2, edges],\ngot [edges] " + 20 * "long "
    failing.append(error(message))
    result = CliRunner().invoke(app, ["fail"])
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr == "Error: " + " ".join(message.split()) + "\n"


def test_debug_shows_where(failing: list[Exception]) -> None:
    failing.append(ValueError("wrong"))
    result = CliRunner().invoke(app, ["--debug", "fail"])
    assert result.exception is failing[0]


def test_what_is_no_mistake_of_the_user_stays_an_error(failing: list[Exception]) -> None:
    failing.append(KeyError("bug"))
    assert CliRunner().invoke(app, ["fail"]).exception is failing[0]
