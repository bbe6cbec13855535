import pytest
import torch
from torch import nn

import enfa
from enfa.nn.encode import Categorical, EdgeEncoder, NodeEncoder
from enfa.testing import assert_same_as_full, random_graphs


def _plan(channels: int | list[int] = 3, edge_channels: int | list[int] | None = None) -> enfa.Bag:
    graphs = random_graphs(3, 6, seed=1, channels=channels, edge_channels=edge_channels)
    conv = "gin" if edge_channels is None else "gine"
    return enfa.make_plan(graphs, enfa.NodeMarking(), enfa.DSGNN(channels, 4, 2, 1, conv, edge_channels=edge_channels))


def test_categories_are_embedded_by_column_and_summed() -> None:
    encoder = Categorical([3, 2], 4)
    columns = [nn.Embedding(3, 4, _weight=encoder.weight[:3]), nn.Embedding(2, 4, _weight=encoder.weight[3:])]
    values = torch.tensor([[0, 0], [2, 1], [1, 1]])
    assert torch.allclose(encoder(values), columns[0](values[:, 0]) + columns[1](values[:, 1]))


def test_very_many_categories_are_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same numbers, without a matrix of feature rows times categories."""
    encoder, values = Categorical([30, 20], 4).double(), torch.randint(0, 20, (50, 2))
    found = []
    for limit in (2**24, 1):
        monkeypatch.setattr("enfa.nn.encode._PRODUCT", limit)
        encoder.weight.grad = None
        out = encoder(values)
        out.square().sum().backward()
        found.append((out.detach(), encoder.weight.grad))
    assert all(torch.allclose(a, b, rtol=1e-12, atol=1e-12) for a, b in zip(*found))


@pytest.mark.parametrize("wrong", [[], [3, 0], [-1]])
def test_cardinalities_are_positive(wrong: list[int]) -> None:
    with pytest.raises(ValueError, match="Expected cardinalities >= 1, one per column, got"):
        Categorical(wrong, 4)


@pytest.mark.parametrize("channels", [2, [3, 2]])
def test_marks_stand_behind_the_features(channels: int | list[int]) -> None:
    plan = _plan(channels)
    encoder = NodeEncoder(channels, 5, 1)
    rows = encoder(plan)
    assert rows.kind == "pairs" and rows.value.shape == (len(plan.feature), encoder.out_channels)
    assert rows.value[:, -1].tolist() == [float(m) for m in plan.marked]
    if channels == 2:
        assert torch.equal(rows.value[:, :2], plan.x_rows[plan.feature])


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (3, 2, "Expected node features with 3 float columns, got 2 columns .*: set in_channels=2; marks come on their own$"),
        (3, 1, r"got 1 columns of torch.float32: set in_channels=1 \(x of shape \[n\] is one column, x\[:, None\]\); marks"),
        (3, [4, 4, 4], r"3 float columns, got 3 columns of torch.int64: .*\(x.float\(\)\), or give in_channels=\[number of"),
        ([4], 1, "Expected node features with 1 categorical columns, got 1 columns of torch.float32"),
        ([4, 4], [4], "Expected node features with 2 categorical columns, got 1 columns of torch.int64"),
        ([9, 2], [9, 3], "Expected node features column 1 to be below 2, got 2"),
    ],
)
def test_refuses_features_that_the_model_was_not_made_for(model: int | list[int], data: int | list[int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        NodeEncoder(model, 4, 1)(_plan(data))


@pytest.mark.parametrize(
    ("model", "data", "message"),
    [
        (3, 2, "Expected edge attributes with 3 float columns, got 2 columns of torch.float32: set edge_channels=2$"),
        ([4], 1, "Expected edge attributes with 1 categorical columns, got 1 columns of torch.float32"),
        ([2], [3], "Expected edge attributes column 0 to be below 2, got 2"),
        (2, [3, 3], r"2 columns of torch.int64: make them floats \(edge_attr.float\(\)\), or give edge_channels=\[number of"),
        (2, None, "Expected graphs with 'edge_attr', because the model reads it, got none"),
    ],
)
def test_refuses_edge_attributes_that_the_model_was_not_made_for(
    model: int | list[int], data: int | list[int] | None, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        EdgeEncoder(model, 4, 0)(_plan(3, data))


def test_refuses_marks_of_another_width() -> None:
    with pytest.raises(ValueError, match=r"Expected marks of 2 channels, got 1 from the policy \(set mark_channels=1\)"):
        NodeEncoder(3, 4, 2)(_plan())
    with pytest.raises(ValueError, match=r"Expected edge marks of 2 channels, got 0 .*set edge_mark_channels=0"):
        EdgeEncoder(3, 4, 2)(_plan(3, 3))


@pytest.mark.parametrize("channels", [2, [3, 2]])
def test_a_model_may_do_without_the_marks_of_a_policy_that_marks_nothing(channels: int | list[int]) -> None:
    graphs = random_graphs(4, 7, seed=1, channels=channels)
    torch.manual_seed(0)
    model = enfa.DSGNN(channels, 6, 2, 2, mark_channels=0)
    assert_same_as_full(model, enfa.NodeDeletion(), graphs)
    rows = model.encoder(enfa.make_plan(graphs, enfa.NodeDeletion(), model))
    assert rows.shape[1] == (2 if channels == 2 else 6)
    with pytest.raises(ValueError, match=r"Expected marks of 0 channels, got 1 from the policy \(set mark_channels=1\)"):
        enfa.make_plan(graphs, enfa.NodeMarking(), model)
