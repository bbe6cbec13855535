"""What a stranger meets first: the version, the changelog, the workflows, and a code base that Python 3.10 reads."""

import ast
import re
from pathlib import Path

import pytest
import yaml

import enfa

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "tests", "benchmarks", "examples", "docs")
OLDEST, NEWEST = 10, 13


def test_one_place_for_the_version() -> None:
    assert 'dynamic = ["version"]' in (ROOT / "pyproject.toml").read_text()
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
    """Every Python from the oldest to the newest, the site, and the wheel."""
    read = yaml.safe_load((ROOT / ".github" / "workflows" / "tests.yml").read_text())["jobs"]
    assert set(read) == {"tests", "docs", "wheel"}
    assert read["tests"]["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in range(OLDEST, NEWEST + 1)]
    project = (ROOT / "pyproject.toml").read_text()
    assert f'requires-python = ">=3.{OLDEST}"' in project
    assert re.findall(r'"Programming Language :: Python :: (3\.\d+)"', project) == read["tests"]["strategy"]["matrix"]["python"]
    steps = [step.get("run", "") for job in read.values() for step in job["steps"]]
    assert "make test" in steps[2] and any("mkdocs build --strict" in step for step in steps)
    for script in re.findall(r"python (\S+\.py)", " ".join(steps)):
        assert (ROOT / script).is_file()


def test_hooks_are_those_of_make_lint() -> None:
    (repo,) = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    entries = [hook["entry"] for hook in repo["hooks"]]
    assert entries[:2] == ["ruff check", "mypy"]
    assert (ROOT / entries[2].split()[1]).is_file()
