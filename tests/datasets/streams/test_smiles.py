from __future__ import annotations

import math
from itertools import repeat
from pathlib import Path

import pytest

import enfa
from enfa.datasets import SmilesStream, from_smiles
from enfa.datasets import stream as by_name


def test_lines(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,SMILES,logp,heat\n1,CCO,0.5,2\n\n2, c1ccccc1 ,,3\n")
    (tmp_path / "a.smi").write_text("CCO ethanol\n\nCC\n")
    stream = SmilesStream(tmp_path / "a.csv", ["heat", "logp"])
    (number, text, values), (last, other, (_, lacking)) = stream.lines()
    assert (number, text, values) == (2, "CCO", [2.0, 0.5]) and (last, other) == (4, "c1ccccc1") and math.isnan(lacking)
    assert list(SmilesStream(tmp_path / "a.smi").lines()) == [(1, "CCO", []), (3, "CC", [])]
    assert [len(block) for block in stream.raw_blocks(repeat(1))] == [1, 1]


@pytest.mark.parametrize(("name", "mark"), [("a.tsv", "\t"), ("a.CSV", ";"), ("a.csv", "\t")])
def test_tables_are_those_that_training_reads(tmp_path: Path, name: str, mark: str) -> None:
    text = "id,canonical_smiles,log p\n1,CCO,0.5\n2,CC,NA\n"
    (tmp_path / name).write_text("\ufeff" + text.replace(",", mark), encoding="utf-8")
    for stream in (SmilesStream(tmp_path / name, ["log p"]), by_name(tmp_path / name, labels=["log p"])):
        (_, one, (half,)), (_, other, (lacking,)) = stream.lines()
        assert (one, other, half) == ("CCO", "CC", 0.5) and math.isnan(lacking)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("smiles,logp\nCCO,high\n")
    with pytest.raises(ValueError, match=r"a\.csv, line 2: expected numbers, yes/no or blanks in .* 'logp', got 'high'"):
        list(SmilesStream(tmp_path / "a.csv", ["logp"]))
    with pytest.raises(ValueError, match="expected a column 'heat', got smiles, logp"):
        list(SmilesStream(tmp_path / "a.csv", ["heat"]).lines())
    (tmp_path / "a.csv").write_text("smiles,logP,LogP\nCCO,1,2\n")
    with pytest.raises(ValueError, match="expected one column 'logp', got 2"):
        list(SmilesStream(tmp_path / "a.csv", ["logp"]).lines())
    with pytest.raises(ValueError, match="expected a column 'heat', got smiles, logP, LogP"):
        list(SmilesStream(tmp_path / "a.csv", ["heat"]).lines())
    for line in ("CCO", "CCO,1,2"):  # a cell that is missing is no label that was not measured
        (tmp_path / "a.csv").write_text(f"smiles,logp\n{line}\nCC,1\n")
        with pytest.raises(ValueError, match=r"a\.csv, line 2: expected 2 columns, as in the header, got another number"):
            list(SmilesStream(tmp_path / "a.csv", ["logp"]))
    with pytest.raises(ValueError, match=r"expected a \.csv or \.tsv file"):
        SmilesStream(tmp_path / "a.smi", ["heat"])
    (tmp_path / "a.smi").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match="is not a text file"):
        list(SmilesStream(tmp_path / "a.smi").lines())


def test_molecules(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    (tmp_path / "a.csv").write_text("smiles,logp\nCCO,0.5\nc1ccccc1,1\n")
    found = list(SmilesStream(tmp_path / "a.csv", ["logp"]))
    for one, other in zip(found, from_smiles(["CCO", "c1ccccc1"])):
        assert (one.x == other.x).all() and (one.edge_index == other.edge_index).all()
    assert [graph.y.tolist() for graph in found] == [[[0.5]], [[1.0]]]
    (tmp_path / "a.smi").write_text("CCO\nC(\n")
    with pytest.raises(ValueError, match=r"a\.smi, line 2: expected a molecule, got the SMILES 'C\('"):
        list(SmilesStream(tmp_path / "a.smi"))


def test_a_mark_that_excel_begins_files_with_is_no_part_of_a_name(tmp_path: Path) -> None:
    for name, text in (("a.csv", "smiles,logp\nCCO,1\n"), ("a.smi", "CCO ethanol\n")):
        (tmp_path / name).write_text("\ufeff" + text, encoding="utf-8")
        ((_, smiles, _),) = SmilesStream(tmp_path / name).lines()
        assert smiles == "CCO"


def test_lines_that_cannot_be_read_are_left_out_where_that_is_asked_for(tmp_path: Path) -> None:
    pytest.importorskip("rdkit", reason="rdkit is not installed")
    (tmp_path / "a.csv").write_text("smiles,logp\nCCO,1\nC(,2\nCC,2,3\nCCC\n,3\nCCCC,\n")
    found = list(SmilesStream(tmp_path / "a.csv", ["logp"], skip_bad=True))
    assert [(graph.line, graph.num_nodes) for graph in found] == [(2, 3), (7, 4)]
    with pytest.raises(
        ValueError, match=r"line 3: expected a molecule, got the SMILES .*; --skip-bad .* leaves such lines out"
    ):
        list(SmilesStream(tmp_path / "a.csv", ["logp"]))
    given = by_name(tmp_path / "a.csv", labels=["logp"], skip_bad=True)
    model = enfa.DSGNN(list(enfa.datasets.ATOM_CHANNELS), 4, 1, 1)
    for size, shards in ((3, 2), (9, 1), (2, 2), (1, 2)):
        with pytest.warns(UserWarning, match="4 of 6 lines could not be read and were left out: the attribute 'line'"):
            enfa.compile(given, enfa.NodeMarking(), model, out=tmp_path / f"{size}", shard_size=size, workers=1, progress=False)
        opened = enfa.ShardedDataset.open(tmp_path / f"{size}")
        assert len(opened) == 2 and len(opened.shards) == shards
        assert opened[[0, 1]].graph_attr["line"].tolist() == [2, 7]
    (tmp_path / "b.smi").write_text("C(\nC((\n")
    with pytest.raises(ValueError, match="Expected a graph among the 2 from number 0 on, got none that can be read"):
        bad = by_name(tmp_path / "b.smi", skip_bad=True)
        enfa.compile(bad, enfa.NodeMarking(), model, out=tmp_path / "bad", shard_size=1, workers=1, progress=False)
    with pytest.raises(ValueError, match="Expected a text file of molecules"):
        by_name("PROTEINS", skip_bad=True)
