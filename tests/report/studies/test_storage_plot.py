from __future__ import annotations

import enfa
from enfa.report.studies.storage import measure_storage
from enfa.report.studies.storage_plot import draw_storage
from enfa.testing import random_graphs


def test_every_point_is_in_the_picture() -> None:
    """Small and large savings share one scale."""
    results = [
        {"dataset": f"{count} graphs", "policy": name, "entries": measure_storage(random_graphs(count, nodes), policy, [1, 2])}
        for count, nodes in ((2, 4), (30, 40))
        for name, policy in (("node_marking", enfa.NodeMarking()), ("edge_deletion", enfa.EdgeDeletion()))
    ]
    above, below = draw_storage(results, [1, 2], "paper").subfigs
    for axes in above.axes:
        low, high = axes.get_ylim()
        assert len(axes.lines) == 4
        left = [value for line in axes.lines for value in line.get_ydata()]
        assert low < min(left)
    assert high == 100
    assert [axes.get_ylabel() for axes in below.axes] == ["node marking", "edge deletion"]
    assert all(len(axes.patches) == 2 * 3 * 4 for axes in below.axes)
