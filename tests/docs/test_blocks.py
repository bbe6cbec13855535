"""Every code block of the pages runs, or says why not; every command that they show exists, with its options."""

import ast
import dataclasses
import importlib.util
import re
import textwrap
from pathlib import Path

import click
import pytest
import torch
import typer
import yaml
from pages import BLOCKS, INDENTED, PAGES, ROOT, SHELL, commands, indented, make, sentences, to_run

from enfa.cli.app import app
from enfa.edits import policy_from
from enfa.training import Config

SHOWN = [(page, block) for page in PAGES for block in BLOCKS[page]]
# pages with commands are run with these (test_commands.py), those of which a notebook exists as that, README by test_readme.py
WITH_CODE = [p for p in PAGES if any(b.runs for b in BLOCKS[p]) and not to_run(p) and p.stem not in (*make.PAGES, "README")]


def _is_python(block: str) -> bool:
    """Statements or calls. What is printed, and rows of data, are not."""
    try:
        tree = ast.parse(textwrap.dedent(block))
    except SyntaxError:
        return False
    return any(isinstance(node, ast.Call | ast.Assign | ast.Import | ast.ImportFrom) for node in ast.walk(tree))


def test_indented_python_would_be_found() -> None:
    shown = "As here:\n\n    plan = make_plan()\n    model(plan)\n\nor\n\n    {'a': 1}\n\nand\n\n    line 5: no SMILES\n"
    assert [_is_python(block) for block in INDENTED.findall(shown)] == [True, False, False]


def _name(page: object) -> str | None:
    return page.stem if isinstance(page, Path) else None


@pytest.mark.parametrize("page", PAGES, ids=_name)
def test_blocks_are_of_a_known_kind(page: Path) -> None:
    """Indented ones would not be found, and a mark gives a reason."""
    assert page.read_text().count("```") == 2 * len(BLOCKS[page])
    for text in indented(page):
        assert not _is_python(text), f"put this between lines of ```, so that it is run:\n{text}"
    for block in BLOCKS[page]:
        assert block.language in ("python", *SHELL, "yaml", "json", "text"), block.code
        assert not block.mark or block.mark == "needs data" or len(block.mark) > len("not run: it"), block.code


@pytest.mark.parametrize("page", WITH_CODE, ids=_name)
def test_python_runs(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The blocks of a page follow each other."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCKS[page]:
        if block.runs:
            exec(compile(block.code, page.name, "exec"), names)


@pytest.mark.parametrize(("page", "block"), [s for s in SHOWN if s[1].mark == "needs data"], ids=_name)
def test_python_with_data_runs(page: Path, block: object, shared_data: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "data").symlink_to(shared_data)
    monkeypatch.chdir(tmp_path)
    exec(compile(block.code, page.name, "exec"), {})  # type: ignore[attr-defined]


@pytest.mark.parametrize(("page", "block"), [s for s in SHOWN if s[1].language == "python"], ids=_name)
def test_python_parses(page: Path, block: object) -> None:
    compile(block.code, page.name, "exec")  # type: ignore[attr-defined]


@pytest.mark.parametrize(("page", "block"), [s for s in SHOWN if s[1].language == "yaml"], ids=_name)
def test_settings_in_yaml_exist(page: Path, block: object) -> None:
    """Settings of ``enfa train``; a policy with its parameters."""
    read = yaml.safe_load(block.code)  # type: ignore[attr-defined]
    assert set(read) <= {field.name for field in dataclasses.fields(Config)}
    if "policy" in read:
        policy_from(read["policy"], **read.get("policy_params", {}))


EVERY = {str(command): command.words for page in PAGES for command in (*commands(page), *sentences(page))}


@pytest.mark.parametrize("words", EVERY.values(), ids=" ".join)
def test_commands_exist(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of ``enfa`` with these options, of make as a target, of Python as a script or a module, of pip with these extras."""
    monkeypatch.chdir(ROOT)
    first, *rest = words
    if first == "enfa" and "--help" not in rest:
        group = typer.main.get_command(app)
        paths = [w for w in rest if w.startswith("configs/")]
        assert all(list(ROOT.glob(path)) for path in paths)
        before = group.make_context("enfa", rest, resilient_parsing=True)  # takes what is the same for all commands
        name, command, arguments = group.resolve_command(before, [*before._protected_args, *before.args])  # type: ignore[attr-defined]
        command.make_context(name, arguments)
    elif first == "make":
        assert all(re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.MULTILINE) for target in rest)
    elif first == "python" and rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]) is not None
    elif first == "python":
        assert (ROOT / rest[0]).is_file()
    elif first == "pip":
        extras = re.findall(r"\w+", "".join(re.findall(r"\[(.*?)\]", " ".join(rest))))
        assert all(f"\n{name} = [" in (ROOT / "pyproject.toml").read_text() for name in extras)
    else:
        assert all((ROOT / w).exists() for w in rest if w.startswith(("tests/", "src/", "docs/"))), words


def test_a_wrong_option_would_be_found() -> None:
    group = typer.main.get_command(app)
    _, command, arguments = group.resolve_command(click.Context(group), ["power", "BREC", "--leyers", "3"])  # type: ignore[attr-defined]
    with pytest.raises(Exception, match="No such option"):
        command.make_context("power", arguments)
