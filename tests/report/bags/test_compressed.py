import numpy as np
import pytest

import enfa
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.report.bags import compressed
from enfa.report.bags.storage import count_bags, stored_bags
from enfa.testing import random_graphs

POLICIES = [enfa.NodeMarking(), enfa.NodeDeletion(), enfa.EdgeDeletion(), enfa.EgoNets(1)]


@pytest.mark.parametrize("policy", POLICIES, ids=repr)
def test_compresses_what_the_layout_counts(policy: enfa.Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a codec that does nothing, the bytes are those of the layout, however many graphs are written out at a time."""
    graphs = check_graphs(random_graphs(7, nodes=8, seed=1, channels=[3, 2], edge_channels=[2, 4]))
    edits = edits_by(policy, graphs)
    monkeypatch.setattr(compressed, "pack", lambda array: (array.view(np.uint8), {}))
    for edges in (1, 150, 10**6):
        monkeypatch.setattr(compressed, "_EDGES", edges)
        assert compressed.compressed_bags(graphs, edits) == sum(stored_bags(count_bags(graphs, edits, 1), "paper").values())


def test_repetition_compresses() -> None:
    graphs = check_graphs(random_graphs(3, nodes=40, seed=0, channels=[3]))
    edits = edits_by(enfa.NodeMarking(), graphs)
    assert compressed.compressed_bags(graphs, edits) < sum(stored_bags(count_bags(graphs, edits, 1), "paper").values()) / 20
