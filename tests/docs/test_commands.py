"""Every command of the pages is run, or says in the page why not: page by page, in order, with the code between them, in one
folder for each as a reader would. Data are small stand-ins, and runs are cut short by settings behind the page's own."""

import itertools
import re
import runpy
import sys
from pathlib import Path

import pytest
import torch
from pages import BLOCKS, INDENTED, PAGES, ROOT, SHELL, Command, commands, commands_of, indented, make, sentences, to_run
from stand_ins import SMALL, before_sentences, lay_out
from typer.testing import CliRunner

from enfa.cli.app import app

pytest.importorskip("lightning", reason="training needs the extra enfa[train]")
pytest.importorskip("rdkit", reason="molecules need the extra enfa[chem]")

# What is put behind a command: less of the same, and leave to write over what the page's commands wrote.
CUT = {
    "train": SMALL,
    "test": SMALL,
    "sweep": [*SMALL, "epochs=2", "--folds", "0", "--jobs", "1"],
    "warmup": [word for word in SMALL if "=" in word],
    "predict": ["--force"],
    "reproduce": ["--only", "storage,accuracy", "--datasets", "PROTEINS"],
    "compile": ["--workers", "1", "--no-progress"],
    "brec": ["--pairs", "0:2", "--epochs", "2", "--width", "8"],
}
# What stands for a name of the reader's own.
NAMES = {"DATASET": "PROTEINS", "CONFIG...": "configs/PROTEINS-ds-nm.yaml"}
# What commands leave in the reader's folder.
LEFT = {
    "explain": ["explanation.svg", "explanation.json", "aspirin.png", "aspirin.json", "graph.svg"],
    "power": ["power.svg", "results/brec-dss.json"],
    "pretrained": ["runs/new/fold-0-seed-0/best.ckpt", "predictions.csv"],
    "README": ["runs/ZINC-sswl-nmd/fold-0-seed-0/best.ckpt"],
    "reproduce": ["report/index.html", "report/report.md", "report-whole/index.html"],
    "scale": ["shards/manifest.json", "zinc/manifest.json", "molecules/manifest.json"],
    "training": ["predictions.csv", "runs/five/ensemble.json", "mine/PROTEINS-ds-nm.json", "docs/results.md"],
}
# Tests which say more of what a page's commands answer; those of claims measure, some for hours, and their files are compared.
ELSEWHERE = {"own_data": "tests/test_own_data.py", "claims": "tests/docs/test_claims.py"}
# How many commands of each page's blocks are not run, all for a reason that the page has.
NOT_RUN = {"README": 2, "CONTRIBUTING": 11, "figures": 8, "own_data": 1, "reproduce": 1, "scale": 11, "start": 2}
RUN = [page for page in PAGES if to_run(page) and page.stem not in ELSEWHERE]


def run(command: Command) -> None:
    first, *rest = command.words
    if first == "enfa":
        found = [str(p) for word in rest for p in (sorted(Path().glob(word)) if "*" in word else [NAMES.get(word, word)])]
        more = [] if "--help" in rest else CUT.get(rest[0], [])
        if "--resume" in rest:
            more = [*more, "epochs=2"]  # the one of before is done
        result = CliRunner().invoke(app, [*found, *more])
        assert result.exit_code == 0, f"{command}: {result.output}"
    elif first == "python" and rest[0].endswith(".py"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", rest)
            runpy.run_path(rest[0], run_name="__main__")
    else:
        pytest.fail(f"`{command}` cannot be run in a test: put <!-- not run ({first}): the reason --> above its block")


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ENFA_DATA", raising=False)
    lay_out(page.stem, tmp_path, monkeypatch)
    torch.manual_seed(0)
    names: dict[str, object] = {}
    for block in BLOCKS[page]:
        if block.runs and page.stem not in (*make.PAGES, "README"):  # tests/docs/test_notebooks.py, tests/test_readme.py
            exec(compile(block.code, page.name, "exec"), names)
        elif block.language in SHELL:
            for command in commands_of(block):
                if not command.reason:
                    run(command)
    before_sentences(page.stem)
    for command in sentences(page):
        if command.words[0] == "enfa":
            run(command)
    for path in LEFT.get(page.stem, []):
        assert Path(path).is_file(), path
    if page.stem == "scale":
        assert "1000 graphs in 4 shards" in capsys.readouterr().out
        assert len(names["loader"]) == 8 and names["plan"].num_graphs == 1000 - 7 * 128  # type: ignore[arg-type, attr-defined]
        assert all(p.grad is not None for p in names["model"].parameters())  # type: ignore[attr-defined]


def test_pages_with_commands_in_blocks_are_run_and_leave_something() -> None:
    assert {page.stem for page in PAGES if any(not c.reason for c in commands(page))} <= {*LEFT, *ELSEWHERE}
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())


def test_commands_that_are_not_run_are_counted_and_have_reasons() -> None:
    skipped = {page.stem: [command for command in commands(page) if command.reason] for page in PAGES}
    assert {page: len(found) for page, found in skipped.items() if found} == NOT_RUN
    for command in itertools.chain(*skipped.values()):
        assert len(command.reason.split()) >= 2, command
        assert all((ROOT / path).exists() for path in re.findall(r"(?:tests|examples|docs|\.github)/[\w/.]*\w", command.reason))
    for page in PAGES:
        for block in BLOCKS[page]:
            if block.language in SHELL and block.mark:
                assert any(command.reason for command in commands_of(block)), f"{page.stem}: {block.mark!r} is of no command"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_command_stands_where_it_would_not_be_found(page: Path) -> None:
    for block in indented(page):
        for line in block.splitlines():
            assert not re.match(r" +(enfa|python|pip|make|dask|torchrun|pytest) ", line), f"put it between lines of ```: {line}"


def test_a_command_without_a_reason_would_be_found() -> None:
    lines = ["<!-- not run (pip): it installs -->", "```sh", "pip install .", "enfa nothing", "conda install x # y", "```", ""]
    (block,) = make.blocks("\n".join(lines))
    installed, wrong, other = commands_of(block)
    assert installed.reason == "it installs" and not wrong.reason and other.words == ("conda", "install", "x")
    with pytest.raises(AssertionError, match="enfa nothing"):
        run(wrong)
    with pytest.raises(pytest.fail.Exception, match=r"not run \(conda\)"):
        run(other)
    assert INDENTED.findall("As here:\n\n    enfa train x\n\n") == ["    enfa train x\n"]
