"""Every policy, exact under every kind of model."""

from __future__ import annotations

import pytest

import enfa
from enfa.edits import POLICIES

from .conftest import CASES

EVERY = {
    "marking": enfa.NodeMarking(),
    "distances 0": enfa.NodeMarking(distances=0),
    "distances 2": enfa.NodeMarking(distances=2),
    "deletion": enfa.NodeDeletion(),
    "deletion isolate": enfa.NodeDeletion(isolate=True),
    "edge deletion": enfa.EdgeDeletion(),
    "edge marking": enfa.EdgeMarking(),
    "edge marking degrees": enfa.EdgeMarking(structure="degrees"),
    "edge marking distances": enfa.EdgeMarking(structure="distances"),
    "ego 0": enfa.EgoNets(0),
    "ego 1": enfa.EgoNets(1),
    "ego 2 mark": enfa.EgoNets(2, mark=True),
    "ego 1 mark isolate": enfa.EgoNets(1, mark=True, isolate=True),
    "ego 2 distances": enfa.EgoNets(2, mark="distances"),
    "neighbors": enfa.NeighborMarking(2),
    "pairs": enfa.PairMarking(2, mark="distances"),
    "most central": enfa.MostCentral(enfa.NodeMarking(), 2),
    "reconstruction 2": enfa.Reconstruction(2, max_subgraphs=6),
    "reconstruction 4": enfa.Reconstruction(4, max_subgraphs=9, seed=3),
    "reconstruction n-1": enfa.Reconstruction(-1),
    "subsample": enfa.Subsample(enfa.NodeMarking(distances=1), count=3),
    "reconstruction n-2": enfa.Reconstruction(-2, max_subgraphs=7),
}


def test_every_policy_is_here():
    assert set(POLICIES.values()) == {type(p) for p in EVERY.values()}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", EVERY)
def test_same_as_full(name, case, exact):
    """Every policy is trained in every case; evaluated, where only norms and dropout differ, it is in half of them."""
    policy = EVERY[name]
    if policy.edge_mark_channels and CASES[case]["conv"] not in ("gine", "gatv2"):
        with pytest.raises(ValueError, match="does not read edge attributes"):
            exact(policy, case)
        return
    evaluated = (list(EVERY).index(name) + list(CASES).index(case)) % 2 == 0
    exact(policy, case, ["train"] + ["eval"] * evaluated)
