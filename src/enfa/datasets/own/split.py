"""Which molecules to train, validate and test on."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from enfa.datasets.folds import stratified_folds

__all__ = ["at_random", "by_scaffold", "check_column", "column_of", "part_of", "scaffold"]

PARTS = {"train": "train", "training": "train", "valid": "valid", "val": "valid", "validation": "valid", "test": "test"}
COLUMN = "column:"


def column_of(split: str) -> str | None:
    """The column that says it, of ``column:NAME``; None of ``random`` and ``scaffold``."""
    if split.startswith(COLUMN) and len(split) > len(COLUMN):
        return split.removeprefix(COLUMN)
    if split not in ("random", "scaffold"):
        raise ValueError(f"Expected split to be random, scaffold or column:NAME, got {split!r}")
    return None


def part_of(text: str) -> str | None:
    """
    >>> part_of("Validation"), part_of("?")
    ('valid', None)
    """
    return PARTS.get(text.lower())


def check_column(name: str, found: Iterable[str | None]) -> None:
    """Refuse a column of parts in which one of the three does not occur."""
    there = set(found)
    lacking = [part for part in dict.fromkeys(PARTS.values()) if part not in there]
    if lacking:
        words = ", ".join(text for text, part in PARTS.items() if part == lacking[0])
        raise ValueError(f"Expected some molecules with {lacking[0]} in the column {name!r} (as {words}), got none")


def at_random(classes: np.ndarray, seed: int) -> dict[str, np.ndarray]:
    """Eight tenths, a tenth and a tenth, each class in its share: two of ten stratified folds are held out."""
    if len(classes) < 10:
        raise ValueError(f"Expected at least 10 molecules to draw a split from, got {len(classes)}")
    fold = stratified_folds(classes, 10, seed)
    return {"train": np.flatnonzero(fold > 1), "valid": np.flatnonzero(fold == 1), "test": np.flatnonzero(fold == 0)}


def scaffold(molecule: Any) -> str:
    """The rings of a molecule and what links them (Bemis and Murcko), as SMILES; "" without rings. Stereo is left aside."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    return Chem.MolToSmiles(MurckoScaffold.GetScaffoldForMol(molecule), isomericSmiles=False)


def by_scaffold(scaffolds: Sequence[str]) -> dict[str, np.ndarray]:
    """Molecules with one scaffold stay together: the largest groups go to train until that has eight tenths of all, then to
    valid until the two have nine, and the rest to test. Of groups of one size the one that begins last goes first, as
    DeepChem takes them.

    >>> {part: rows.tolist() for part, rows in by_scaffold(list("aaaaaaabcd")).items()}
    {'train': [0, 1, 2, 3, 4, 5, 6, 9], 'valid': [8], 'test': [7]}
    """
    groups: dict[str, list[int]] = {}
    for row, text in enumerate(scaffolds):
        groups.setdefault(text, []).append(row)
    found: dict[str, list[int]] = {"train": [], "valid": [], "test": []}
    # in tenths, without fractions that round
    for group in sorted(groups.values(), key=lambda rows: (-len(rows), -rows[0])):
        before = len(found["train"]) + len(group)
        if 10 * before <= 8 * len(scaffolds):
            found["train"] += group
        elif 10 * (before + len(found["valid"])) <= 9 * len(scaffolds):
            found["valid"] += group
        else:
            found["test"] += group
    empty = [part for part, rows in found.items() if not rows]
    if empty:
        raise ValueError(
            f"Expected enough scaffolds for train, valid and test, got {len(groups)} for {len(scaffolds)} molecules, which "
            f"leave {empty[0]} empty: use --split random or column:NAME"
        )
    return {part: np.array(sorted(rows)) for part, rows in found.items()}
