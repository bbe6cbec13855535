import pytest
from torch_geometric.nn import GATConv, GATv2Conv

import enfa


@pytest.mark.parametrize("conv", [GATConv, GATv2Conv])
def test_convs_that_add_loops_by_row_number_are_refused(conv):
    with pytest.raises(ValueError, match="add_self_loops=False"):
        enfa.DSGNN(3, 4, 2, 2, lambda i, o: conv(i, o))
    enfa.DSGNN(3, 4, 2, 2, lambda i, o: conv(i, o, add_self_loops=False))
