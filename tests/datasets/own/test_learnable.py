from collections.abc import Callable
from pathlib import Path

import pytest

from enfa.datasets import from_csv

pytest.importorskip("rdkit", reason="rdkit is not installed")

CHAINS = ["C" * (1 + k) + end for k in range(10) for end in ("O", "N", "Cl")]
PARTS = ["train", "train", "train", "valid", "test"]  # again and again


def write(tmp_path: Path, header: str, *rows: str) -> Path:
    path = tmp_path / "m.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("in_train", "elsewhere", "message"),
    [
        (lambda k: "", lambda k: k % 2, "at least one training molecule with a yes or a no for 'q', got none"),
        (lambda k: 1, lambda k: k % 2, "a yes and a no among the training molecules for 'q', got 'yes' only"),
        (lambda k: 0 if k % 3 else "", lambda k: k % 2, "a yes and a no among the training molecules for 'q', got 'no' only"),
        (lambda k: "", lambda k: k / 7, "at least one training molecule with a number for 'q', got none"),
        (lambda k: 0.1, lambda k: k / 7, "two different numbers for 'q' among training molecules, got 0.1 only"),
    ],
)
def test_every_target_has_something_to_learn(
    tmp_path: Path, in_train: Callable[[int], object], elsewhere: Callable[[int], object], message: str
) -> None:
    numbers = "number" in message
    rows = [
        f"{text},{k / 3 if numbers else k // 5 % 2},{(in_train if PARTS[k % 5] == 'train' else elsewhere)(k)},{PARTS[k % 5]}"
        for k, text in enumerate(CHAINS)
    ]
    path = write(tmp_path, "smiles,p,q,part", *rows)
    assert len(from_csv(path, targets=["p"], split="column:part")) == 30
    for targets in (["p", "q"], ["q"]):
        with pytest.raises(ValueError, match=f"m.csv: Expected {message}"):
            from_csv(path, targets=targets, split="column:part")


@pytest.mark.parametrize(("in_train", "got"), [
    ("", "at least one training molecule with a class for 'q', got none"),
    ("b", "at least two classes among the training molecules for 'q', got 'b' only"),
])  # fmt: skip
def test_classes_are_two_at_least(tmp_path: Path, in_train: str, got: str) -> None:
    rows = [f"{text},{in_train if PARTS[k % 5] == 'train' else 'abc'[k % 3]},{PARTS[k % 5]}" for k, text in enumerate(CHAINS)]
    path = write(tmp_path, "smiles,q,part", *rows)
    with pytest.raises(ValueError, match=f"m.csv: Expected {got}"):
        from_csv(path, targets=["q"], split="column:part")


def test_scores_that_are_not_defined_are_refused_before_training(tmp_path: Path) -> None:
    part = ["train"] * 10 + ["valid"] * 10 + ["test"] * 10
    path = write(tmp_path, "smiles,y,part", *(f"{text},{k % 2 * (k < 20)},{part[k]}" for k, text in enumerate(CHAINS)))
    with pytest.raises(
        ValueError, match="a yes and a no among the 10 molecules to test on, without which rocauc is not defined"
    ):
        from_csv(path, targets=["y"], split="column:part")
    assert len(from_csv(path, targets=["y"], split="column:part", metric="accuracy")) == 30
    part[10:20] = ["train"] * 9 + ["valid"]
    path = write(tmp_path, "smiles,y,part", *(f"{text},{k % 2},{part[k]}" for k, text in enumerate(CHAINS)))
    with pytest.raises(ValueError, match="a yes and a no among the 1 molecule to validate on, without which"):
        from_csv(path, targets=["y"], split="column:part")
