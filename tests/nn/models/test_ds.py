"""What the README promises, as written there."""

import torch
from torch_geometric.nn import GINConv

import enfa
from enfa.testing import random_graphs


def test_runs_as_written() -> None:
    graphs = random_graphs(4, 8, channels=3)
    model = enfa.DSGNN(in_channels=3, hidden_channels=32, out_channels=2, num_layers=4, conv="gin")
    plan = enfa.make_plan(graphs, policy=enfa.NodeMarking(), model=model, kind="distinct")
    assert model(plan).shape == (4, 2)
    cost = plan.cost()
    assert len(cost.rows) == len(cost.edges) == 4 and cost.bytes > 0
    assert plan.to("cpu").device == torch.device("cpu")
    enfa.testing.assert_same_as_full(model, enfa.NodeMarking(), graphs)


def test_takes_a_conv_as_users_write_it() -> None:
    def conv(i: int, o: int) -> GINConv:
        return GINConv(torch.nn.Sequential(torch.nn.Linear(i, o), torch.nn.BatchNorm1d(o), torch.nn.ReLU()))

    graphs = random_graphs(4, 8, channels=[9, 3])
    model = enfa.DSGNN([9, 3], 8, 2, 2, conv)
    enfa.testing.assert_same_as_full(model, enfa.EdgeDeletion(), graphs)


def test_state_moves_to_another_model() -> None:
    graphs = random_graphs(3, 6)
    one, other = enfa.DSGNN(3, 4, 2, 2, dropout=0.3), enfa.DSGNN(3, 4, 2, 2, dropout=0.3)
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), one)
    one(plan)
    other.load_state_dict(one.state_dict())
    torch.manual_seed(0)
    a = one(plan)
    torch.manual_seed(0)
    assert torch.equal(a, other(plan))  # BatchNorm's buffers, and the masks of the next step
