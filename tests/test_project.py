"""What a stranger meets first: the version, the changelog, the workflows, and a code base that Python 3.10 reads."""

import ast
import re
import shlex
from pathlib import Path

import pytest
import yaml

import enfa

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "benchmarks", "examples", "docs")
OLDEST, NEWEST = 10, 13
PROJECT, MAKEFILE, WORKFLOW = (
    (ROOT / name).read_text() for name in ("pyproject.toml", "Makefile", ".github/workflows/tests.yml")
)
JOBS = yaml.safe_load(WORKFLOW)["jobs"]
# of all steps; without what is set for one of them
COMMANDS = [
    [word for word in shlex.split(line, comments=True) if not re.match(r"\w+=", word)]
    for job in JOBS.values()
    for step in job["steps"]
    for line in re.split(r"\n|&&", step.get("run", "").strip())
    if "run" in step
]


def test_one_place_for_the_version() -> None:
    assert 'dynamic = ["version"]' in PROJECT
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == enfa.__version__
    assert f"\n## {enfa.__version__}\n" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_oldest_python_reads_it(folder: str) -> None:
    files = sorted((ROOT / folder).rglob("*.py"))
    assert files
    for path in files:
        ast.parse(path.read_text(), str(path), feature_version=(3, OLDEST))


def test_a_newer_syntax_would_be_found() -> None:
    with pytest.raises(SyntaxError):
        ast.parse("try:\n    pass\nexcept* ValueError:\n    pass\n", feature_version=(3, OLDEST))


def test_workflows_try_what_is_promised() -> None:
    """Every Python from the oldest to the newest, the site, and the wheel; ruff and mypy read it as the oldest does."""
    assert set(JOBS) == {"tests", "oldest", "docs", "wheel"}
    versions = JOBS["tests"]["strategy"]["matrix"]["python"]
    assert versions == [f"3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    for line in (f'requires-python = ">=3.{OLDEST}"', f'target-version = "py3{OLDEST}"', f'python_version = "3.{OLDEST}"'):
        assert line in PROJECT, line
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', PROJECT) == versions
    assert ["make", "test"] in COMMANDS and any(words[:2] == ["mkdocs", "build"] and "--strict" in words for words in COMMANDS)


def test_the_oldest_versions_are_those_that_are_tested() -> None:
    """All that the package needs, and its extras for users that the tests need."""
    parts = pytest.importorskip("tomllib", reason="since Python 3.11").loads(PROJECT)["project"]
    extras = ("train", "scale", "parquet", "report")
    wanted = [*parts["dependencies"], *(name for extra in extras for name in parts["optional-dependencies"][extra])]
    oldest = dict(re.split(r"\[.*\]>=|>=", entry) for entry in wanted)
    tested = dict(line.split("==") for line in (ROOT / "constraints-oldest.txt").read_text().splitlines() if "==" in line)
    assert len(oldest) == len(wanted) > 15
    for name, version in oldest.items():
        assert f"{tested[name]}.".startswith(f"{version}."), name


def test_workflows_name_what_exists() -> None:
    for job in JOBS.values():
        for step in job["steps"]:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step.get("uses", "actions/none@v0"))
            assert step.keys() & {"uses", "run"} and step.keys() <= {"uses", "with", "run", "env", "name"}
            for variable in re.findall(r"\$\{\{ matrix\.(\w+) \}\}", str(step)):
                assert variable in job["strategy"]["matrix"]
            pinned = step.get("with", {}).get("python-version", f"3.{OLDEST}")
            assert pinned in (*JOBS["tests"]["strategy"]["matrix"]["python"], "${{ matrix.python }}")
    made = ("empty/", "dist/")  # by the steps themselves
    for words in COMMANDS:
        for word in words:
            if "/" in word and not word.startswith(("https://", *made)):
                assert (ROOT / word).exists(), words
        if words[0] == "make":
            assert all(f"\n{target}:" in MAKEFILE for target in words[1:])


@pytest.mark.parametrize("text", [MAKEFILE, WORKFLOW], ids=["Makefile", "workflow"])
def test_extras_that_are_installed_exist(text: str) -> None:
    named = [name for group in re.findall(r"'\.\[([\w,]+)\]'", text) for name in group.split(",")]
    assert named and all(f"\n{name} = [" in PROJECT for name in named), named


def test_hooks_are_those_of_make_lint() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in repo["hooks"]]
    assert entries[:2] == ["ruff check", "mypy"]
    assert (ROOT / entries[2].split()[1]).is_file()
