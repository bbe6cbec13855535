"""Files of the user's own: what they define can be named, and what is wrong with them is said in one line."""

import hashlib
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from concurrent.futures.process import _ExceptionWithTraceback  # type: ignore[attr-defined]
from pathlib import Path

import code_of_mine
import pytest
from typer.testing import CliRunner

import enfa
from enfa import own_code
from enfa.cli.app import app
from enfa.edits import policy_from
from enfa.graphs.names import Unnamed
from enfa.nn.convs import make_conv
from enfa.nn.models.registry import MODELS, SHIPPED
from enfa.own_code import code_of, name_code, place, tell_changed
from enfa.testing import assert_same_as_full, random_graphs

Write = Callable[[str, str], Path]


@pytest.fixture(autouse=True)
def code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", code_of_mine.__file__)


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Names a file of the user's own, with this text."""

    def written(name: str, text: str) -> Path:
        (tmp_path / name).write_text(text)
        monkeypatch.setenv("ENFA_CODE", str(tmp_path / name))
        return tmp_path / name

    return written


def test_what_a_file_defines_is_called_as_there() -> None:
    assert MODELS["Plain"] is code_of_mine.Plain and MODELS["lifted"] is code_of_mine.lifted
    assert set(SHIPPED) < set(MODELS) and "Gated" not in MODELS  # a conv
    assert len(MODELS) == len(list(MODELS)) == len(SHIPPED) + 21
    assert policy_from("Leaves", every=3) == code_of_mine.Leaves(3)
    assert policy_from("subsample", policy={"name": "Leaves", "every": 1}, count=2).policy == code_of_mine.Leaves(1)
    assert isinstance(make_conv("Gated", 4, 8, 0, None), code_of_mine.Gated)


def test_it_is_exact_as_any_other() -> None:
    model = enfa.DSGNN(3, 8, 2, num_layers=2, conv="Gated")
    assert_same_as_full(model, policy_from("Leaves"), random_graphs(6, nodes=7, channels=3))


def test_policies_within_those_of_ones_own(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    """Annotations may be texts, as with `from __future__ import annotations`, and such a policy can be compiled and kept."""
    path = write("within.py", "import enfa\n\n\nclass Twice(enfa.Policy):\n" + TWICE)
    monkeypatch.setenv("ENFA_CODE", os.pathsep.join([str(path), code_of_mine.__file__]))
    policies = [policy_from("Twice", policy={"name": "Leaves", "every": every}) for every in (1, 3)]
    assert repr(policies[1]) == "Twice(policy={'name': 'leaves', 'every': 3})" and policies[0] != policies[1]
    graphs, model = random_graphs(3, nodes=5, channels=3), enfa.DSGNN(3, 8, 2, num_layers=1)
    found = [enfa.compile(graphs, each, model, cache=path.parent / "kept", progress=False) for each in policies]
    assert found[0].num_subgraphs > found[1].num_subgraphs and len(list((path.parent / "kept").iterdir())) == 2
    assert policy_from("Twice").policy is None


def test_only_an_argument_that_is_a_policy_is_made_one(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    made = "class All(enfa.Policy):\n    def __init__(self, policies: list[enfa.Policy]):\n        self.policies = policies\n"
    monkeypatch.setenv("ENFA_CODE", str(write("lists.py", f"import enfa\n\n\n{made}")))
    assert policy_from("All", policies=["node_marking"]).policies == ["node_marking"]
    with pytest.raises(ValueError, match=r"Expected policy to be a policy's name, .* got None"):
        policy_from("subsample", policy=None, count=3)


TWICE = """
    def __init__(self, policy: "enfa.Policy | None" = None):
        self.policy = policy

    def bag(self, graph):
        return [*self.policy.bag(graph)] * 2
"""


def test_no_file_no_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", "")
    with pytest.raises(Unnamed, match=r"Expected the model to be one of ds, .*, got 'Plain'; one of your own needs the file"):
        MODELS["Plain"]
    with pytest.raises(Unnamed, match=r"got 'Leaves'; one of your own needs .* --code FILE, .*; in Python, give it itself$"):
        policy_from("Leaves")
    with pytest.raises(Unnamed, match="Expected conv to be one of gin, gine, graphconv, gcn, got 'Gated'"):
        make_conv("Gated", 4, 8, 0, None)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("wrong_a.py", "x = 1\n\ny = x.nothing\n", r"wrong_a.py, line 3: AttributeError: 'int' object has no attribute"),
        ("wrong_b.py", "def f(:\n", r"wrong_b.py, line 1: SyntaxError: invalid syntax$"),
        ("wrong_c.py", "import no_such_package\n", "wrong_c.py, line 1: ModuleNotFoundError: No module"),
        ("wrong_d.py", "__all__ = ['Net']\n", "wrong_d.py: Expected what __all__ names, got no 'Net'"),
        ("wrong_e.py", "import sys\n\nsys.exit(0)\n", "wrong_e.py, line 3: SystemExit: 0"),
        ("net.v2.py", "", r"Expected a file for --code whose name has no dot but that of \.py, got .*net.v2.py: rename it"),
        ("math.py", "", r"math.py: Expected a file whose name no other module has, got that of .*: rename it"),
        ("model.txt", "", r"Expected a Python file \(\.py\) for --code, got .*model.txt"),
    ],
)
def test_a_file_that_is_wrong(write: Write, name: str, text: str, message: str) -> None:
    write(name, text)
    with pytest.raises(ValueError, match=message):
        MODELS["Net"]


def test_a_file_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENFA_CODE", str(tmp_path / "none.py"))
    with pytest.raises(ValueError, match=r"There is no file .*none.py, which --code names"):
        MODELS["Net"]


def test_a_name_that_the_file_has_not() -> None:
    with pytest.raises(Unnamed, match=r"Plain.*, got 'Plane' \(did you mean 'Plain'\?\); code_of_mine.py has no other$"):
        MODELS["Plane"]


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        ("self.haed(bag)", "AttributeError: 'Broken' object has no attribute 'haed'"),
        ("bag.x.mean(0)", "TypeError: mean along dim=0 mixes rows"),
        ("torch.ones(2, 3) @ torch.ones(2, 3)", "RuntimeError: mat1 and mat2 shapes cannot be multiplied"),
    ],
)
def test_a_mistake_in_a_model_is_a_line_of_its_file(write: Write, forward: str, message: str) -> None:
    name = "broken_" + hashlib.sha256(forward.encode()).hexdigest()[:8]  # a module is read once
    path = write(
        f"{name}.py", f"import torch\nclass Broken(torch.nn.Module):\n  def forward(self, bag):\n    return {forward}\n"
    )
    words = ["compile", "CSL", "--model", "Broken", "--out", str(path.parent / "out")]
    result = CliRunner().invoke(app, words)
    assert result.stderr.startswith(f"Error: {path}, line 4: {message}") and result.stderr.count("\n") == 1
    error = CliRunner().invoke(app, [*words, "--debug"]).exception
    assert message in f"{type(error).__name__}: {error}"


def test_a_mistake_in_another_process_has_its_place_too(write: Write) -> None:
    path = write("far_away.py", "def fails():\n    raise KeyError('late')\n")
    with pytest.raises(KeyError) as raised:
        MODELS["fails"]()
    sent = pickle.loads(pickle.dumps(_ExceptionWithTraceback(raised.value, raised.value.__traceback__)))  # as executors do
    assert sent.__traceback__ is None and place(sent) == f"{path}, line 2"


def test_names_of_two_things_are_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("twice.py", "def gin(a, b): pass\ndef ds(): pass\ndef Plain(): pass\n")
    for named in (lambda: MODELS["ds"], lambda: make_conv("gin", 1, 1, 0, None)):
        with pytest.raises(ValueError, match=r"'(ds|gin)' in one place, got it in the package and in .*twice.py: rename"):
            named()
    assert MODELS["Plain"]() is None
    monkeypatch.setenv("ENFA_CODE", os.pathsep.join([str(path), code_of_mine.__file__]))
    with pytest.raises(ValueError, match=r"Expected the model 'Plain' in one place, got it in .*twice.py and in .*mine.py"):
        MODELS["Plain"]
    assert MODELS["lifted"] is code_of_mine.lifted  # what nobody names may be there twice


def test_a_file_that_is_named_twice_is_one(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("once.py", "def one(): pass\n")
    again = path.parent / ".." / path.parent.name / path.name
    monkeypatch.setenv("ENFA_CODE", os.pathsep.join(map(str, [path, path, again])))
    assert MODELS["one"]() is None


def test_a_path_that_would_be_taken_for_two_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"Expected a file for --code without ':' in its path, which divides several"):
        name_code([tmp_path / "a:b.py"])


@pytest.mark.parametrize("text", ["from beside import Net", "import beside"])
def test_what_lies_beside_a_file_is_not_taken_from_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "beside.py").write_text("class Net: pass\n")
        (tmp_path / folder / f"{folder}_of_{text.split()[0]}.py").write_text(f"{text}\n")
    files = [tmp_path / folder / f"{folder}_of_{text.split()[0]}.py" for folder in ("a", "b")]
    monkeypatch.setattr(sys, "path", sys.path.copy())
    name_code(files[:1])
    with pytest.raises(
        ValueError, match=r"b/beside.py: Expected a file whose name no other module has, got that of .*a/beside"
    ):
        name_code(files)
    del sys.modules["beside"]


def test_what_a_file_imports_is_not_its_own(write: Write) -> None:
    write("imports.py", "from torch.nn import Linear\nfrom enfa import NodeMarking\nclass Net(Linear): pass\nnet = Net(1, 1)\n")
    assert set(MODELS) - set(SHIPPED) == {"Net"}


def test_fingerprints_are_those_of_the_files_that_are_named(write: Write) -> None:
    assert code_of(["ds", "node_marking", None, 3]) == {}
    found = code_of(["ds", "Leaves"])
    assert list(found) == ["code_of_mine.py"]
    path = write("changing.py", "def one(): pass\n")
    before = code_of(["one"])
    assert list(before) == ["changing.py"]
    path.unlink()  # what was read is what computes
    assert code_of(["one"]) == before


def test_what_a_file_imports_of_its_folder_has_a_fingerprint_too(write: Write) -> None:
    """However it does, and however deep; not what it imports of elsewhere, nor what lies there and is not imported."""
    helpers = {
        "first_part": "import second_part\nimport torch\n", "second_part": "import first_part\nWIDTH = 8\n", "unread_part": "",
        "lazy_part": "", "broken_part": "def f(:\n",
    }  # fmt: skip
    for name, text in helpers.items():
        write(f"{name}.py", text)
    lazily = "def two():\n    from lazy_part import nothing\n    import broken_part\n"
    path = write("in_parts.py", f"from first_part import second_part\n\n\n{lazily}")
    before = code_of(["two"])
    names = ["broken_part.py", "first_part.py", "in_parts.py", "lazy_part.py", "second_part.py"]
    assert sorted(before) == names and code_of(["three"]) == {}
    (path.parent / "second_part.py").write_text("WIDTH = 9\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a checkpoint from when nothing was known of what a file imports
        tell_changed(Path("older.ckpt"), {"in_parts.py": before["in_parts.py"]}, before)
    assert code_of(["two"]) == before  # what was read is what computes
    own_code._read.cache_clear()  # as another process reads it
    own_code._warn.cache_clear()
    with pytest.warns(UserWarning, match=r"^second_part.py has changed since last.ckpt was written, and may compute"):
        tell_changed(Path("last.ckpt"), before, code_of(["two"]))


@pytest.mark.parametrize("options", [["--code", "{}", "power"], ["power", "--code", "{}"], ["power", "--code={}"]])
def test_commands_take_a_file_anywhere(monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.setenv("ENFA_CODE", "")
    given = [option.format(code_of_mine.__file__) for option in options]
    result = CliRunner().invoke(app, [*given, "nowhere.npz", "--model", "Plane", "--policy", "Leaves"])
    assert result.exit_code == 2 and "no such file" in result.stderr  # all names are known but this one
    result = CliRunner().invoke(app, [*given, "BREC", "--model", "Plane"])
    assert result.exit_code == 2 and "(did you mean 'Plain'?)" in result.stderr


def test_an_option_without_its_file() -> None:
    result = CliRunner().invoke(app, ["power", "BREC", "--code"])
    assert result.exit_code == 2 and "'--code' requires an argument" in result.stderr
    result = CliRunner().invoke(app, ["table", "nowhere", "--", "--code", "no.py"])  # no option there
    assert result.exit_code == 2 and "no.py" in result.stderr


@pytest.mark.parametrize("named", ["model=Plain", "policy=Leaves", "conv=Gated", None])
def test_a_file_of_which_nothing_is_named_is_told_of(named: str | None, tmp_path: Path) -> None:
    """What was trained was another model than was meant."""
    (tmp_path / "c.yaml").write_text("dataset: none.npz\njk: null\n" if named == "model=Plain" else "dataset: none.npz\n")
    result = CliRunner().invoke(app, ["train", str(tmp_path / "c.yaml"), f"out={tmp_path}", *filter(None, [named])])
    said = [line for line in result.stderr.splitlines() if line.startswith("--code defines Across, Attends, ")]
    assert result.exit_code == 2 and len(said) == (named is None)
    if named is None:
        assert said[0].endswith("policy=NAME: the model is ds, of the package, with node_marking")
