from pathlib import Path

import numpy as np
import pytest

from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, BadRows, from_csv

pytest.importorskip("rdkit", reason="rdkit is not installed")

CHAINS = ["C" * (1 + k) + end for k in range(10) for end in ("O", "N", "Cl")]


def write(tmp_path: Path, header: str, *rows: str) -> Path:
    path = tmp_path / "m.csv"
    path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_yes_no_task(tmp_path: Path) -> None:
    path = write(tmp_path, "id,smiles,active", *(f"{k},{text},{k % 2}" for k, text in enumerate(CHAINS)))
    data = from_csv(path, targets=["active"])
    assert (data.task, data.metric, data.targets, data.name) == ("binary", "rocauc", ("active",), "m")
    assert (data.in_channels, data.edge_channels) == (ATOM_CHANNELS, BOND_CHANNELS), "also what no atom here has"
    assert data.labels[:, 0].tolist() == [k % 2 for k in range(30)] and data.graphs[3].num_nodes == 3
    assert {part: len(rows) for part, rows in data.split().items()} == {"train": 24, "valid": 3, "test": 3}


def test_a_mark_that_excel_begins_files_with_is_no_part_of_a_name(tmp_path: Path) -> None:
    for header, target in (("smiles,y", "y"), ('"smiles","y, measured"', "y, measured")):
        path = write(tmp_path, "\ufeff" + header, *(f"{text},{k / 7}" for k, text in enumerate(CHAINS)))
        assert path.read_bytes()[:3] == b"\xef\xbb\xbf"
        assert from_csv(path).targets == from_csv(path, smiles="smiles").targets == (target,)


def test_the_one_other_column_is_the_target(tmp_path: Path) -> None:
    path = write(tmp_path, "Canonical_SMILES,kind", *(f"{text},{'abc'[k % 3]}" for k, text in enumerate(CHAINS)))
    data = from_csv(path)
    assert (data.task, data.metric, data.targets, data.classes) == ("multiclass", "accuracy", ("kind",), ("a", "b", "c"))
    assert data.only("kind") is data


def test_a_single_target_may_be_given_by_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,logp,other", *(f"{text},{k / 7},{k / 3}" for k, text in enumerate(CHAINS)))
    assert from_csv(path, targets="logp").targets == ("logp",)
    with pytest.raises(ValueError, match=r"Expected a column 'log', got smiles, logp, other \(did you mean 'logp'\?\)"):
        from_csv(path, targets="log")


def test_a_column_of_parts_has_all_three(tmp_path: Path) -> None:
    parts = ["Train", "TEST", "training"]
    path = write(tmp_path, "smiles,y,part", *(f"{text},{k / 7},{parts[k % 3]}" for k, text in enumerate(CHAINS)))
    said = r"m.csv: Expected some molecules with valid in the column 'part' \(as valid, val, validation\), got none$"
    with pytest.raises(ValueError, match=said):
        from_csv(path, targets="y", split="column:part")


def test_tasks_with_blanks(tmp_path: Path) -> None:
    rows = [f"{text},{k % 2},{(k // 2) % 2 if k % 5 else ''}" for k, text in enumerate(CHAINS)]
    told: list[object] = []
    path = write(tmp_path, "smiles,a,b", *rows, "CC,,NA")
    data = from_csv(path, targets=["b", "a"], metric="accuracy", report=lambda *given: told.append(given))
    assert len(data) == 30 and np.isnan(data.labels[0, 0]) and data.targets == ("b", "a")
    assert told == [([], 1)], "a row without any label is left out, and told"


def test_numbers_are_standardised_by_the_training_molecules(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,p,part", *(
        f"{text},{100 + 3.5 * k},{'train' if k < 20 else 'val' if k < 25 else 'Test'}" for k, text in enumerate(CHAINS)
    ))  # fmt: skip
    data = from_csv(path, targets=["p"], split="column:part")
    assert data.task == "regression" and data.metric == "mae" and data.mean is not None and data.std is not None
    train = data.labels[data.split()["train"]]
    assert abs(train.mean()) < 1e-6 and abs(train.std() - 1) < 1e-6
    np.testing.assert_allclose(data.labels[:, 0] * data.std[0] + data.mean[0], 100 + 3.5 * np.arange(30), rtol=1e-6)
    assert data.split()["valid"].tolist() == list(range(20, 25))


def test_all_bad_rows_are_told(tmp_path: Path) -> None:
    bad = {3: "C(C,1", 5: ",0", 8: "CC(C)(C)(C)C,1", 12: "CC,perhaps", 14: "C1CC,perhaps", 20: "CC"}
    rows = [bad.get(k + 2, f"{text},{k % 2}") for k, text in enumerate(CHAINS)]
    path = write(tmp_path, "smiles,y", *rows)
    with pytest.raises(
        BadRows, match=r"6 of 30 rows cannot be read, line 3: 'C\(C': no SMILES string \(and 5 more\); --skip-bad"
    ) as error:
        from_csv(path)
    assert [row.line for row in error.value.rows] == [*bad]
    assert str(error.value.rows[2]).startswith("line 8: 'CC(C)(C)(C)C': Explicit valence for atom # 1 C, 5")
    assert error.value.rows[4].why == "no SMILES string; Expected y to be yes or no (1 or 0) or blank, got 'perhaps'"
    told: list[object] = []
    data = from_csv(path, skip_bad=True, metric="accuracy", report=lambda *given: told.append(given))
    assert len(data) == 24 and told == [(error.value.rows, 0)]
    assert data.labels[:, 0].tolist() == [k % 2 for k in range(30) if k + 2 not in bad]


def test_rare_atoms_are_not_bad(tmp_path: Path) -> None:
    rare = ["[Og]C", "*C", "[Fe+6]", "C[Se]C", "[NH3][Pt](Cl)(Cl)[NH3]"]
    path = write(tmp_path, "smiles,y", *(f"{text},{k % 2}" for k, text in enumerate(CHAINS + rare)))
    assert len(from_csv(path, metric="accuracy")) == 35


def test_scaffold_split(tmp_path: Path) -> None:
    rings = ["c1ccccc1" + "C" * k for k in range(16)] + ["C1CC1", "C1CCC1", "C1CCCC1", "C1CCCCC1"]
    path = write(tmp_path, "smiles,y", *(f"{text},{k / 3}" for k, text in enumerate(rings)))
    parts = from_csv(path, split="scaffold").split()
    assert [rows.tolist() for rows in parts.values()] == [list(range(16)), [18, 19], [16, 17]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smiles": "smile"}, "Expected a column 'smile', got id, smiles, y, z, n"),
        ({}, "Expected --target to name one or more columns to learn, of id, y, z, n, got none"),
        ({"targets": ["smiles"]}, "Expected the target 'smiles' to be no column of molecules"),
        ({"targets": ["w"]}, "Expected a column 'w'"),
        (
            {"targets": ["y"], "split": "column:z"},
            "30 of 30 rows cannot be read.*Expected z to be train, valid or test, got '0.5'",
        ),
        ({"targets": ["y"], "split": "scaffold"}, "m.csv: Expected enough scaffolds"),
        ({"targets": ["y"], "metric": "mae"}, "mae is for numbers"),
        ({"targets": ["n"], "metric": "ap"}, "the metric ap is for yes/no tasks and classes, got numbers"),
    ],
)
def test_refuses(tmp_path: Path, options: dict[str, object], message: str) -> None:
    path = write(tmp_path, "id,smiles,y,z,n", *(f"{k},{text},{k % 2},0.5,{k / 3}" for k, text in enumerate(CHAINS)))
    with pytest.raises(ValueError, match=message):
        from_csv(path, **options)  # type: ignore[arg-type]


def test_the_column_of_molecules_is_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, "structure,y", *(f"{text},{k % 2}" for k, text in enumerate(CHAINS)))
    with pytest.raises(ValueError, match="one of structure, y, got none; molecules seem to stand in structure"):
        from_csv(path)
    two = write(tmp_path, "smiles,canonical_smiles,y", *(f"{text},{text},{k % 2}" for k, text in enumerate(CHAINS)))
    with pytest.raises(ValueError, match="seem to stand in smiles and canonical_smiles"):
        from_csv(two)
