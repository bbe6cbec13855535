import numpy as np
import pytest
import torch

import enfa
from enfa.batch.parts import SubgraphLoader
from enfa.testing import random_graph


def test_every_subgraph_once_with_its_label_in_another_order_each_epoch() -> None:
    graph, policy = random_graph(11, 2.5, seed=1), enfa.EgoNets(1, mark=True)
    model = enfa.DSGNN(3, 4, 1, 2, readout="root", norm="layer").double().eval()
    compiled = enfa.compile([graph], policy, model, progress=False)
    whole, labels, chosen = model(compiled[:]), torch.arange(11) * 10, np.array([9, 2, 5, 7, 0])
    loader = SubgraphLoader(compiled, labels, chosen, 2, shuffle=True)
    orders = []
    for epoch in range(3):
        loader.sampled.set_epoch(epoch)
        plans = list(loader)
        assert [plan.num_subgraphs for plan in plans] == [2, 2, 1]
        for plan in plans:
            assert torch.allclose(model(plan), whole[plan.y // 10], rtol=1e-12)
        orders.append(torch.cat([plan.y for plan in plans]).tolist())
        assert sorted(orders[-1]) == [0, 20, 50, 70, 90]
    assert orders[0] != orders[1] or orders[0] != orders[2]
    plain = SubgraphLoader(compiled, labels, chosen, 2, shuffle=True)  # counts its passes, as the other was told to
    assert [torch.cat([plan.y for plan in plain]).tolist() for _ in range(3)] == orders
    with pytest.raises(ValueError, match="Expected a label for each of 11 subgraphs, got 10"):
        SubgraphLoader(compiled, labels[:10], chosen, 2)
    readers = enfa.DSSGNN(3, 4, 1, 2, readout="root", norm="layer")
    with pytest.raises(ValueError, match="Expected whole bags, because step"):
        enfa.compile([graph], policy, readers, progress=False).part(chosen)
