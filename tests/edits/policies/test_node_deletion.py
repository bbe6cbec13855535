from programs import layers

import enfa
from enfa.testing import degenerate_graphs


def test_isolation_keeps_the_row() -> None:
    star = degenerate_graphs(1)["star"]
    for isolate, rows in ((True, 49), (False, 42)):
        assert enfa.make_plan([star], enfa.NodeDeletion(isolate), layers(1), "full").num_pairs == rows
