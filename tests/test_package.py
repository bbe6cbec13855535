"""What holds for the package as a whole."""

import ast
import doctest
import importlib.util
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import enfa
from enfa.edits.policies import POLICIES

ROOT = Path(enfa.__file__).parent

# What each part may import, beside itself. The chain runs one way; what stands beside it may look at it.
CHAIN = ["graphs", "edits", "plan", "batch", "nn", "training", "cli"]
MAY = {part: set(CHAIN[:i]) for i, part in enumerate(CHAIN)}
MAY["datasets"] = set()
MAY["testing"] = {"graphs", "edits", "plan", "batch", "nn"}
MAY["expressiveness"] = {"graphs", "edits", "plan", "batch", "nn"}
MAY["attribution"] = {"graphs", "edits", "plan", "batch", "nn"}
MAY["report"] = set(CHAIN[:-1]) | {"attribution", "datasets", "testing"}
for part in ("training", "cli"):
    MAY[part] |= {"attribution", "datasets", "testing", "report", "expressiveness"}
for part in ("training", "report", "cli"):  # they come after all that ``import enfa`` loads
    MAY[part] |= {"the public names", "__version__"}


def _imports(path: Path) -> set[str]:
    """Modules of the package that a file imports, wherever in the file it does."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert all(alias.name != "*" for alias in node.names), f"{path}: star import"
            if node.module == "enfa":
                found |= {f"enfa.{alias.name}" for alias in node.names}
            else:
                found.add(node.module or "")
    of_no_part = ("__version__", "ahead", "atomic", "cache", "cores", "draws", "lazy", "locks", "memory", "own_code")
    found -= {f"enfa.{name}" for name in of_no_part}
    return {name for name in found if name == "enfa" or name.startswith("enfa.")}


def _names(path: Path) -> set[str]:
    """What a file calls things by: names, attributes and imports."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        found |= {getattr(node, key) for key in ("id", "attr", "name") if isinstance(getattr(node, key, None), str)}
    return found


def _files() -> list[Path]:
    return sorted(p for p in ROOT.rglob("*.py") if p.parent != ROOT)


@pytest.mark.parametrize("path", _files(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    part = path.relative_to(ROOT).parts[0]
    for name in _imports(path):
        other = name.split(".")[1] if "." in name else "the public names"
        assert other == part or other in MAY[part], f"{part} must not import {name}"


def test_the_public_names_load_nothing_behind_them() -> None:
    """Or those who may import them would import each other. But for ``load``, which is imported when it is asked for."""
    behind = {"training", "report", "cli", "datasets"}
    found = {name for name in _imports(ROOT / "__init__.py") if name.split(".")[1] in behind}
    assert found == {"enfa.training.checkpoint"}


def test_a_wrong_import_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("def f():\n    from enfa.nn import DSGNN\n    import enfa.cli.app\n    from enfa import plan\n")
    assert _imports(wrong) == {"enfa.nn", "enfa.cli.app", "enfa.plan"}


def test_the_chain_knows_no_policy_by_name() -> None:
    """The plan, the batches and the executor see edits only. (A stored file names the policy that made it.)"""
    named = {policy.__name__ for policy in POLICIES.values()}
    known = {"plan": set(), "batch": {"Subsample"}, "nn": set()}  # a part of every bag is drawn anew for an epoch
    for part, but in known.items():
        files = [path for path in _files() if path.relative_to(ROOT).parts[0] == part]
        assert files
        for path in files:
            assert not _names(path) & named - but, path


def test_a_policys_name_would_be_found(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("from a import EgoNets as E\nb = enfa.NodeMarking()\nc: Subsample\n")
    assert {"EgoNets", "NodeMarking", "Subsample"} <= _names(wrong)


BLOCKED = ("ogb", "rdkit", "lightning", "pytorch_lightning", "torchmetrics", "sklearn", "pandas", "pyarrow", "networkx",
           "matplotlib", "torch_scatter", "torch_sparse", "torch_cluster", "torch_spline_conv", "pyg_lib", "dask",
           "distributed", "s3fs", "outdated")  # fmt: skip


@pytest.mark.long
def test_needs_nothing_optional() -> None:
    """The package imports, a dataset loads and a model runs where everything optional is missing; and no PyTorch is imported
    before something needs it. One process for all, as most of its time goes into importing PyTorch."""
    code = f"""
import sys
import enfa
assert not {{"torch", *{BLOCKED!r}}} & set(sys.modules)
sys.modules.update(dict.fromkeys({BLOCKED!r}))  # None: importing it raises ImportError
import enfa.datasets, enfa.cli
enfa.datasets.load("CSL").split(0)
try:
    enfa.datasets.from_smiles(["C"])
except ImportError as error:
    assert "pip install 'enfa[chem]'" in str(error), error
else:
    raise AssertionError("from_smiles ran without rdkit")
model = enfa.DSGNN(3, 4, 2, 2)
model(enfa.make_plan(enfa.testing.random_graphs(2), enfa.NodeMarking(), model))
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_public_names() -> None:
    assert sorted(enfa.__all__) == sorted(set(enfa.__all__)) and all(hasattr(enfa, name) for name in enfa.__all__)
    promised = "Bag DSGNN DSSGNN CountedBatchNorm EdgeDeletion NodeDeletion NodeMarking Program compile make_plan testing"
    assert set(promised.split()) <= set(enfa.__all__)


def test_examples_in_docstrings_run() -> None:
    """Also where pytest is not asked to collect them."""
    ran = 0
    for found in pkgutil.walk_packages(enfa.__path__, "enfa."):
        spec = importlib.util.find_spec(found.name)
        assert spec is not None and spec.origin is not None
        if ">>>" in Path(spec.origin).read_text():
            failed, count = doctest.testmod(importlib.import_module(found.name))
            assert failed == 0, found.name
            ran += count
    assert ran > 5
