"""Distinct rows: the partition is that of brute force, and the counts on real data are known."""

from pathlib import Path

import pytest
from canonical import check_rows
from cases import POLICIES
from hypothesis import given
from hypothesis import strategies as st
from strategies import graph_lists

import enfa
from enfa.datasets import from_npz
from enfa.testing import degenerate_graphs, random_graphs

SPECS = {
    "plain": enfa.Spec(3),
    "degrees": enfa.Spec(3, degrees=True),
    "edges": enfa.Spec(2, edge_attr=True),
    "graph": enfa.Spec(2, share="graph"),
    "input": enfa.Spec(2, context="input"),
    "input encoder": enfa.Spec(2, context="input", context_encoder=True),
    "output": enfa.Spec(3, context="output"),
    "output encoder": enfa.Spec(2, context="output", context_encoder=True, edge_attr=True),
    "input encoder degrees": enfa.Spec(2, context="input", context_encoder=True, degrees=True),
    "output encoder degrees edges graph": enfa.Spec(2, "output", True, True, True, "graph"),
}


@pytest.mark.parametrize("kind", ["distinct", "ego", "full"])
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("spec", SPECS)
def test_rows_are_those_of_brute_force(spec: str, policy: str, kind: str) -> None:
    graphs = random_graphs(3, 6, seed=2, channels=[2], edge_channels=[2], loops=True, parallel=True)
    graphs += degenerate_graphs([2], [2]).values()
    graphs += graphs[:1]  # rows meet again in another graph
    check_rows(enfa.make_plan(graphs, POLICIES[policy], SPECS[spec], kind), graphs, policy)


@given(data=st.data())
def test_rows_are_those_of_brute_force_on_any_graphs(data: st.DataObject) -> None:
    directed = data.draw(st.booleans(), label="directed")
    names = [p for p in POLICIES if p != "edge"] if directed else list(POLICIES)
    policy = data.draw(st.sampled_from(names), label="policy")
    spec = SPECS[data.draw(st.sampled_from(list(SPECS)), label="spec")]
    # an undirected edge has one attribute row: drawn ones may differ by direction, which edge deletion may pair anyhow
    attributes = [1] if policy == "edge" else [2]
    graphs = data.draw(graph_lists([2], attributes, directed=directed))
    check_rows(enfa.make_plan(graphs, POLICIES[policy], spec), graphs, policy)


@pytest.mark.parametrize(
    ("file", "policy", "rows"),
    [
        ("PROTEINS.npz", enfa.NodeMarking(), [1196, 231350, 556880, 820579]),
        ("CEXP.npz", enfa.EdgeDeletion(), [18, 957, 48239, 205365]),
    ],
)
def test_counts_on_real_data(shared_data: Path, file: str, policy: enfa.Policy, rows: list[int]) -> None:
    """The node label is the one categorical feature. More rows would be a defect; so would fewer: a wrong merge."""
    graphs = from_npz(shared_data / file).graphs
    assert graphs[0].x.shape[1] == 1
    assert enfa.make_plan(graphs, policy, enfa.Spec(4)).cost().rows == rows
