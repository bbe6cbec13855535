"""Molecules as graphs with OGB's features: nine categorical columns for atoms, three for bonds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

__all__ = [
    "ATOM_CHANNELS", "BOND_CHANNELS", "elements_of", "from_smiles", "graph_of", "needs_rdkit", "parse", "quietly", "symbol",
]  # fmt: skip

ATOM_CHANNELS = [119, 5, 12, 12, 10, 6, 6, 2, 2]
"""Categories of an atom: element, chirality, degree, charge, hydrogens, radical electrons, hybridisation,
aromatic, in a ring; the last category of the first seven means "anything else"."""

BOND_CHANNELS = [5, 6, 2]
"""Categories of a bond: type (the last: anything else), stereo, conjugated."""

CHIRALITY = ("CHI_UNSPECIFIED", "CHI_TETRAHEDRAL_CW", "CHI_TETRAHEDRAL_CCW", "CHI_OTHER")
HYBRIDISATION = ("SP", "SP2", "SP3", "SP3D", "SP3D2")
BOND_TYPE = ("SINGLE", "DOUBLE", "TRIPLE", "AROMATIC")
STEREO = ("STEREONONE", "STEREOZ", "STEREOE", "STEREOCIS", "STEREOTRANS", "STEREOANY")


def from_smiles(smiles: Sequence[str], y: Any = None) -> list[Data]:
    """One graph per SMILES string, with the features that models trained on OGB's molecules expect.

    Hydrogens stay implicit. Each bond stands in both directions, one after the other. ``y``, if given, has a
    label for each string: integers ``[G]`` or numbers ``[G, T]`` with NaN for "not measured".
    ``from_graphs`` makes a benchmark of the result. Needs rdkit (``pip install enfa[chem]``).
    """
    if isinstance(smiles, str):
        raise TypeError(f"Expected a list of SMILES strings, got the string {smiles!r}")
    needs_rdkit()
    labels = None if y is None else torch.as_tensor(np.asarray(y))
    if labels is not None and len(labels) != len(smiles):
        raise ValueError(f"Expected a label for each of {len(smiles)} SMILES strings, got {len(labels)}")
    graphs = []
    with quietly():
        for position, text in enumerate(smiles):
            if not isinstance(text, str):
                raise TypeError(f"Expected a SMILES string at position {position}, got {text!r}")
            molecule, why = parse(text)
            if molecule is None:
                raise ValueError(f"Expected a molecule at position {position}, got the SMILES {text!r} ({why})")
            graphs.append(graph_of(molecule))
    if labels is not None:
        for graph, label in zip(graphs, labels.split(1)):
            graph.y = label
    return graphs


def needs_rdkit() -> None:
    try:
        import rdkit.Chem  # noqa: F401
    except ImportError as error:
        raise ImportError("Reading SMILES needs rdkit: pip install 'enfa[chem]'") from error


def quietly() -> Any:
    """A context without rdkit's own complaints: errors here say what it would print."""
    from rdkit import rdBase

    return rdBase.BlockLogs()


def parse(text: str) -> tuple[Any, str]:
    """The molecule of a SMILES string; or None, and why there is none."""
    from rdkit import Chem

    if not text.strip():
        return None, "blank"
    molecule = Chem.MolFromSmiles(text)
    if molecule is not None:
        return (molecule, "") if molecule.GetNumAtoms() else (None, "no atoms")
    rough = Chem.MolFromSmiles(text, sanitize=False)
    problems = [] if rough is None else Chem.DetectChemistryProblems(rough)
    return None, "; ".join(problem.Message() for problem in problems) or "no SMILES string"


def elements_of(graphs: Sequence[Data]) -> tuple[int, ...]:
    """The atomic numbers in some graphs of molecules; 119 is what has none.

    >>> from torch_geometric.data import Data
    >>> elements_of([Data(x=torch.tensor([[5], [7], [5]])), Data(x=torch.tensor([[118]]))])
    (6, 8, 119)
    """
    return tuple((torch.cat([graph.x[:, 0] for graph in graphs]).unique() + 1).tolist()) if graphs else ()


def symbol(element: int) -> str:
    """Of an atomic number."""
    from rdkit.Chem import GetPeriodicTable

    return GetPeriodicTable().GetElementSymbol(element) if 0 < element < ATOM_CHANNELS[0] else "an atom of no element"


def graph_of(molecule: Any) -> Data:
    """A molecule of rdkit's as a graph."""
    atoms = [_atom(atom) for atom in molecule.GetAtoms()]
    bonds = list(molecule.GetBonds())
    ends = [[bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()] for bond in bonds]
    both = torch.tensor(ends, dtype=torch.int64).reshape(-1, 2).repeat_interleave(2, dim=0)
    both[1::2] = both[1::2].flip(1)
    features = torch.tensor([_bond(bond) for bond in bonds], dtype=torch.int64).reshape(-1, 3)
    return Data(
        x=torch.tensor(atoms, dtype=torch.int64),
        edge_index=both.t().contiguous(),
        edge_attr=features.repeat_interleave(2, dim=0),
    )


def _atom(atom: Any) -> list[int]:
    return [
        _within(atom.GetAtomicNum() - 1, 118),
        _among(CHIRALITY, atom.GetChiralTag()),
        _within(atom.GetTotalDegree(), 11),
        _within(atom.GetFormalCharge() + 5, 11),
        _within(atom.GetTotalNumHs(), 9),
        _within(atom.GetNumRadicalElectrons(), 5),
        _among(HYBRIDISATION, atom.GetHybridization()),
        int(atom.GetIsAromatic()),
        int(atom.IsInRing()),
    ]


def _bond(bond: Any) -> list[int]:
    stereo = _among(STEREO, bond.GetStereo())
    return [
        _among(BOND_TYPE, bond.GetBondType()),
        stereo if stereo < len(STEREO) else 0,  # kinds newer than OGB's list count as none
        int(bond.GetIsConjugated()),
    ]


def _within(value: int, count: int) -> int:
    """``value`` if it is one of the ``count`` categories, else the category after them."""
    return value if 0 <= value < count else count


def _among(names: tuple[str, ...], value: Any) -> int:
    return names.index(str(value)) if str(value) in names else len(names)
