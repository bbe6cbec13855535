"""Names that are imported when they are first used. That PyTorch is not, before: tests/test_package.py."""

import ast
import importlib
from pathlib import Path

import pytest

import enfa
from enfa.lazy import lazily

PACKAGES = [path.parent for path in Path(enfa.__file__).parent.rglob("__init__.py") if "lazily(__name__" in path.read_text()]


def _name(folder: Path) -> str:
    return ".".join(folder.relative_to(Path(enfa.__file__).parents[1]).parts)


@pytest.mark.parametrize("folder", PACKAGES, ids=_name)
def test_type_checkers_see_the_same(folder: Path) -> None:
    """What is found at run time is what the branch for type checkers imports, and all of ``__all__``."""
    package = importlib.import_module(_name(folder))
    body = ast.parse((folder / "__init__.py").read_text()).body
    block = next(node for node in body if isinstance(node, ast.If))
    seen = [(node.module, alias.name) for node in block.body for alias in node.names]
    assert {name for _, name in seen} == set(package.__all__) <= set(dir(package))
    for module, name in seen:
        there = importlib.import_module(module)
        assert getattr(package, name) is getattr(there, name), name


def test_own_modules_are_found_and_others_are_not() -> None:
    assert enfa.nn.ops.segment.__name__ == "enfa.nn.ops.segment" and "report" in dir(enfa)
    find, _ = lazily("enfa.graphs", {})
    with pytest.raises(AttributeError, match=r"module 'enfa\.graphs' has no attribute 'nothing'"):
        find("nothing")
    assert not hasattr(enfa, "_private") and not hasattr(enfa.nn, "DSGNNN")
