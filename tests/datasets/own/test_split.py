import numpy as np
import pytest

from enfa.datasets.own.split import at_random, by_scaffold, column_of, scaffold


def test_random_parts_have_their_shares() -> None:
    classes = np.arange(100) % 10 == 0
    parts = at_random(classes, 0)
    assert {part: len(rows) for part, rows in parts.items()} == {"train": 80, "valid": 10, "test": 10}
    assert sorted(np.concatenate(list(parts.values()))) == list(range(100))
    assert [int(classes[rows].sum()) for rows in parts.values()] == [8, 1, 1]
    assert not np.array_equal(parts["test"], at_random(classes, 1)["test"])
    with pytest.raises(ValueError, match="at least 10 molecules"):
        at_random(classes[:9], 0)


def test_scaffolds_stay_together_and_large_ones_are_trained_on() -> None:
    names = list("fed" + 3 * "c" + 5 * "b" + 9 * "a")
    parts = by_scaffold(names)
    found = {part: {names[row] for row in rows} for part, rows in parts.items()}
    # 16 of 20 may be trained on, and 18 validated: a and b are 14, where c does not fit any more; d and e do
    assert found == {"train": {"a", "b", "d", "e"}, "valid": {"c"}, "test": {"f"}}
    assert sorted(np.concatenate(list(parts.values()))) == list(range(20))
    with pytest.raises(ValueError, match="got 1 for 20 molecules, which leave train empty"):
        by_scaffold(["same"] * 20)


def test_scaffolds_are_murckos() -> None:
    chem = pytest.importorskip("rdkit.Chem", reason="rdkit is not installed")
    texts = {
        "CCO": "",
        "Cc1ccccc1": "c1ccccc1",
        "OC(=O)c1ccc(CCN2CCOCC2)cc1": "c1ccc(CCN2CCOCC2)cc1",
        "CC1C[C@H]2CCC[C@@H]2C1": "C1CC2CCCC2C1",
    }
    for text, expected in texts.items():
        assert scaffold(chem.MolFromSmiles(text)) == expected
    for text in (
        "[NH3][Pt](Cl)(Cl)[NH3]",
        "[Na+].[Cl-]",
        "*C1CC1",
        "[Og]",
        "CCC1=[O+][Cu-3]2([O+]=C(CC)C1)[O+]=C(CC)CC(CC)=[O+]2",
    ):
        scaffold(chem.MolFromSmiles(text))


def test_column_of() -> None:
    assert (column_of("random"), column_of("scaffold"), column_of("column:part:2")) == (None, None, "part:2")
    for wrong in ("column:", "stratified", "part"):
        with pytest.raises(ValueError, match="random, scaffold or column:NAME, got"):
            column_of(wrong)
