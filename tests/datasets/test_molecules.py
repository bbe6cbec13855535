from pathlib import Path

import numpy as np
import pytest
import torch
from sampled import sample_npz

from enfa.datasets import ATOM_CHANNELS, BOND_CHANNELS, from_graphs, from_npz, from_smiles

pytest.importorskip("rdkit", reason="rdkit is not installed")

SMILES = [
    "C",  # no bond
    "CCO",
    "c1ccccc1C(=O)[O-].[Na+]",  # aromatic, charged, two components
    "N[CH](C)C(=O)O",  # chiral
    "F/C=C/F",
    "F/C=C\\F",
    "C#N",
    "[CH3]",  # radical
    "*CC",  # no element
    "[Og]",
    "F[P](F)(F)(F)F",
    "FS(F)(F)(F)(F)F",
    "[NH3][Pt](Cl)(Cl)[NH3]",
    "[Fe+6]",  # a charge beyond the list
    "C->[Fe]",  # a bond type beyond the list
    "O1C=C[C@H]([C@H]1O2)c3c2cc(OC)c4c3OC(=O)C5=C4CCC(=O)5",
]


def test_channels_are_ogbs(ogb: None) -> None:
    features = pytest.importorskip("ogb.utils.features")
    assert features.get_atom_feature_dims() == ATOM_CHANNELS
    assert features.get_bond_feature_dims() == BOND_CHANNELS


@pytest.mark.parametrize("smiles", SMILES)
def test_features_are_ogbs(smiles: str, ogb: None) -> None:
    expected = pytest.importorskip("ogb.utils.mol").smiles2graph(smiles)
    (graph,) = from_smiles([smiles])
    assert torch.equal(graph.x, torch.from_numpy(expected["node_feat"]))
    assert torch.equal(graph.edge_index, torch.from_numpy(expected["edge_index"]))
    assert torch.equal(graph.edge_attr, torch.from_numpy(expected["edge_feat"]))


def test_the_first_molecule_of_molhiv(data: Path, tmp_path: Path) -> None:
    (graph,) = from_smiles(["CCC1=[O+][Cu-3]2([O+]=C(CC)C1)[O+]=C(CC)CC(CC)=[O+]2"])
    first = sample_npz(data / "ogbg_molhiv.npz", np.array([0]), tmp_path / "first.npz")
    expected = from_npz(first).graphs[0]
    assert torch.equal(graph.x, expected.x)
    assert torch.equal(graph.edge_index, expected.edge_index)
    assert torch.equal(graph.edge_attr, expected.edge_attr)


def test_categories_stay_within_their_channels() -> None:
    graphs = from_smiles(SMILES, y=[0, 1] * (len(SMILES) // 2))
    benchmark = from_graphs(graphs, in_channels=ATOM_CHANNELS, edge_channels=BOND_CHANNELS)
    assert benchmark.in_channels == ATOM_CHANNELS
    assert benchmark.labels.tolist() == [0, 1] * (len(SMILES) // 2)


def test_labels() -> None:
    assert from_smiles(["C", "CC"])[0].y is None
    tasks = from_smiles(["C", "CC"], y=[[0, np.nan], [1, 0]])
    assert tasks[1].y.tolist() == [[1, 0]]
    assert from_graphs(tasks).task == "binary"


def test_refuses(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="molecule at position 1, got the SMILES 'C\\(C'"):
        from_smiles(["C", "C(C"])
    with pytest.raises(ValueError, match="position 0, got the SMILES ''"):
        from_smiles([""])
    with pytest.raises(TypeError, match="a list of SMILES strings, got the string 'CCO'"):
        from_smiles("CCO")
    with pytest.raises(TypeError, match=r"^Expected a SMILES string at position 1, got None$"):
        from_smiles(["C", None])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="a label for each of 2 SMILES strings, got 1"):
        from_smiles(["C", "CC"], y=[0])
    assert capfd.readouterr().err == "", "rdkit's own complaints are kept quiet"
