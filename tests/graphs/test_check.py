from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data, Dataset, HeteroData

import enfa
from enfa.batch.compile import compile_program
from enfa.graphs import check_graphs
from enfa.testing import random_graph


def _good(**changes: object) -> Data:
    graph = random_graph(4, 3.0, channels=2, edge_channels=2, seed=1)
    for name, value in changes.items():
        setattr(graph, name, value)
    return graph


GOOD = _good()
EDGES = GOOD.edge_index.shape[1]
NAN = torch.tensor([[0.0, float("nan")]]).repeat(4, 1)
INF = torch.full((EDGES, 2), float("inf"))


@pytest.mark.parametrize(
    ("bad", "kind", "message"),
    [
        (_good(edge_index=torch.tensor([[0], [4]])), ValueError,
         r"graph 1: Expected 'edge_index' to name nodes 0 to 3, got 0 to 4 .*4 rows, edge_index shape \[2, 1\]\)"),
        (_good(edge_index=torch.tensor([[-1], [2]])), ValueError, "graph 1: .* to name nodes 0 to 3, got -1 to 2"),
        (_good(edge_index=GOOD.edge_index.float()), TypeError,
         rf"graph 1: Expected 'edge_index' to hold integer node numbers, got torch.float32 \(shape \[2, {EDGES}\]\)"),
        (_good(edge_index=GOOD.edge_index.T), ValueError,
         rf"graph 1: Expected 'edge_index' of shape \[2, edges\], got \[{EDGES}, 2\]"),
        (_good(edge_index=GOOD.edge_index.flatten()), ValueError, rf"graph 1: .* got \[{2 * EDGES}\]"),
        (_good(edge_index=None, adj_t=torch.eye(4).to_sparse()), TypeError,
         "graph 1: Expected 'edge_index' to be a tensor, got 'adj_t' in its place: leave ToSparseTensor away"),
        (_good(edge_index=None), TypeError, "graph 1: Expected 'edge_index' to be a tensor, got NoneType"),
        (_good(edge_index=[[0], [1]]), TypeError, "graph 1: Expected 'edge_index' to be a tensor, got list"),
        (_good(x=NAN), ValueError, r"graph 1: Expected 'x' to be finite, got NaN or inf \(shape \[4, 2\]\)"),
        (_good(edge_attr=INF), ValueError,
         rf"graph 1: Expected 'edge_attr' to be finite, got NaN or inf \(shape \[{EDGES}, 2\]\)"),
        (_good(x=None), ValueError, r"graph 1: Expected node features 'x', got none .*torch.zeros\(num_nodes, 1"),
        (_good(x=[1.0]), TypeError, "graph 1: Expected 'x' to be a tensor, got list"),
        (_good(num_nodes=4.5), ValueError, "graph 1: Expected 'x' with a row for each of num_nodes=4.5 nodes, got 4$"),
        (_good(num_nodes=torch.tensor([2, 2])), ValueError, "graph 1: Expected 'x' with a row for each of num_nodes=tensor"),
        (_good(num_nodes=6), ValueError, "graph 1: Expected 'x' with a row for each of num_nodes=6 nodes, got 4$"),
        (_good(x=torch.tensor(1.0)), ValueError, r"graph 1: Expected 'x' of shape \[0, columns\] \(0 nodes\), got \[\]"),
        (_good(x=torch.ones(4, 2).to_sparse()), TypeError,
         "graph 1: Expected 'x' to hold floats or integers, one by one, got a tensor of torch.float32, torch.sparse_coo, "),
        (_good(x=torch.ones(4, 2).to(torch.float8_e4m3fn)), TypeError, "graph 1: .* 'x' .* a tensor of torch.float8_e4m3fn"),
        (_good(x=torch.ones(4, 2, device="meta")), TypeError, "graph 1: Expected 'x' to hold .* on meta"),
        (_good(edge_index=torch.ones(2, 4).long().to_sparse()), TypeError,
         "graph 1: Expected 'edge_index' to hold node numbers, .* torch.sparse_coo"),
        (_good(x=torch.zeros(4, 2, 2)), ValueError, r"graph 1: Expected 'x' of shape \[4, columns\] .*got \[4, 2, 2\]"),
        (_good(x=torch.zeros(4, 2, dtype=torch.complex64)), TypeError,
         "graph 1: .* floats or integers, got torch.complex64"),
        (_good(x=torch.zeros(4, 3)), ValueError,
         "graph 1: Expected 'x' with 2 columns of float32, as in graph 0, got 3 columns of float32"),
        (_good(x=torch.zeros(4, 2, dtype=torch.long)), ValueError,
         "graph 1: Expected 'x' with 2 columns of float32, as in graph 0, got 2 columns of int64"),
        (_good(x=-torch.ones(4, 2, dtype=torch.long)), ValueError, "graph 1: .* categorical values to be >= 0, got -1"),
        (_good(x=torch.full((4, 2), 2**63 + 5, dtype=torch.uint64)), ValueError, r"below 2\^63, got 9223372036854775813"),
        (_good(edge_attr=torch.zeros(EDGES - 1, 2)), ValueError,
         rf"graph 1: Expected 'edge_attr' of shape \[{EDGES}, columns\] \({EDGES} edges\), got \[{EDGES - 1}, 2\]"),
        (_good(edge_attr=torch.zeros(EDGES, 1)), ValueError,
         "graph 1: Expected 'edge_attr' with 2 columns .* got 1 columns"),
        (_good(edge_attr=None), ValueError,
         "graph 1: Expected 'edge_attr' in all graphs or in none, but graph 0 has it"),
        (_good(edge_weight=torch.ones(EDGES)), ValueError,
         "graph 1: Expected no 'edge_weight', which nothing here reads, .*: put weights into 'edge_attr', for a conv that"),
        (HeteroData(), TypeError, "graph 1: Expected torch_geometric Data, got HeteroData"),
        ((GOOD.x, GOOD.edge_index), TypeError, "graph 1: Expected torch_geometric Data, got tuple"),
    ],
)  # fmt: skip
def test_names_the_graph_and_the_shapes(bad: Data, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        check_graphs([GOOD, bad])


def test_edge_attr_only_later() -> None:
    with pytest.raises(ValueError, match=r"graph 1: .* in all graphs or in none, but graph 0 has none"):
        check_graphs([_good(edge_attr=None), GOOD])


def test_something_else_than_a_list() -> None:
    with pytest.raises(TypeError, match=r"Expected a list of graphs, got a single Data object: wrap it as \[graph\]"):
        check_graphs(GOOD)
    with pytest.raises(ValueError, match="Expected at least one graph, got an empty list"):
        check_graphs([])


def test_nodes_and_edges_are_numbered_through() -> None:
    path = Data(x=torch.tensor([[5], [6], [5]]), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    empty = Data(x=torch.zeros(0, 1, dtype=torch.long), edge_index=torch.zeros(2, 0, dtype=torch.long))
    single = Data(x=torch.tensor([[7]]), edge_index=torch.tensor([[0], [0]]))
    found = check_graphs([path, empty, single])
    assert found.node_ptr.tolist() == [0, 3, 3, 4]
    assert (found.num_graphs, found.num_nodes, found.num_edges) == (3, 4, 5)
    assert found.src.tolist() == [1, 0, 2, 1, 3]
    assert found.dst.tolist() == [0, 1, 1, 2, 3]
    assert found.order.tolist() == [1, 0, 3, 2, 4]
    assert found.x[found.node_kind].tolist() == [[5], [6], [5], [7]]
    assert found.edge_attr is None and found.edge_kind.tolist() == [0] * 5


def test_one_column_may_be_flat_and_types_are_kept() -> None:
    flat = Data(x=torch.tensor([1, 0]), edge_index=torch.tensor([[0], [1]], dtype=torch.int32), edge_attr=torch.ones(1))
    found = check_graphs([flat])
    assert found.x.dtype == np.int64 and found.x.shape == (2, 1)
    assert found.edge_attr is not None and found.edge_attr.dtype == np.float32
    double = check_graphs([Data(x=torch.ones(2, 1, dtype=torch.float64), edge_index=flat.edge_index)])
    assert double.x.dtype == np.float64
    half = check_graphs([Data(x=torch.tensor([[0.5], [2.0]], dtype=torch.bfloat16), edge_index=flat.edge_index)])
    assert half.x[half.node_kind].tolist() == [[0.5], [2.0]]
    boolean = check_graphs([Data(x=torch.tensor([[True], [False]]), edge_index=flat.edge_index)])
    assert boolean.x[boolean.node_kind].tolist() == [[1], [0]]


def test_minus_zero_is_zero() -> None:
    graph = Data(x=torch.tensor([[-0.0], [0.0]]), edge_index=torch.zeros(2, 0, dtype=torch.long))
    found = check_graphs([graph])
    assert found.node_kind.tolist() == [0, 0] and not np.signbit(found.x).any()


def test_input_is_not_changed() -> None:
    before = GOOD.clone()
    check_graphs([GOOD, GOOD])
    assert torch.equal(before.x, GOOD.x) and torch.equal(before.edge_index, GOOD.edge_index)


def test_a_dataset_whose_transform_draws_is_read_once() -> None:
    """Or features would be of one draw, and labels and attributes of others."""

    class Noisy(Dataset):
        def len(self) -> int:
            return 3

        def get(self, number: int) -> Data:
            return Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))

    def noise(graph: Data) -> Data:
        graph.x += torch.rand(1)
        graph.y = graph.level = graph.x[0]
        return graph

    policy, model, noisy = enfa.NodeMarking(), enfa.DSGNN(1, 4, 2, num_layers=1), Noisy(transform=noise)
    compiled = enfa.compile(noisy, policy, model, progress=False)
    compiled.extend(noisy)
    checked = compile_program(noisy, policy, compiled.program, progress=False)
    for plan in (enfa.make_plan(noisy, policy, model), compiled[:3], compiled[3:], checked[:]):
        assert sorted(set(plan.x_rows[:, 0].tolist())) == sorted(plan.y.tolist()) == sorted(plan.graph_attr["level"].tolist())
    enfa.testing.assert_same_as_full(model, policy, noisy)


def test_a_list_that_draws_is_read_once() -> None:
    class Drawing(list):
        def __iter__(self):
            return (Data(x=graph.x + (level := torch.rand(1)), edge_index=graph.edge_index, y=level) for graph in [*self[:]])

    graph = Data(x=torch.zeros(2, 1), edge_index=torch.tensor([[0, 1], [1, 0]]))
    plan = enfa.make_plan(Drawing([graph] * 3), enfa.NodeMarking(), enfa.DSGNN(1, 4, 2, num_layers=1))
    assert sorted(set(plan.x_rows[:, 0].tolist())) == sorted(plan.y.flatten().tolist())


def test_a_length_that_promises_more_graphs_than_there_are() -> None:
    class Short:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, number: int) -> Data:
            return [GOOD, GOOD][number]

    with pytest.raises(ValueError, match=r"^Expected 3 graphs, as their length says, got no graph 2 "):
        check_graphs(Short())


@pytest.mark.parametrize("same", [4, 4.0, torch.tensor(4), torch.tensor([4]), np.int64(4)])
def test_a_number_of_nodes_that_says_the_same_is_taken(same: object) -> None:
    assert check_graphs([_good(num_nodes=same)]).num_nodes == 4


def test_negated_views_are_read() -> None:
    x = torch.view_as_complex(torch.ones(4, 2, 2)).conj().imag  # a view that PyTorch has not negated yet
    assert x.is_neg() and (check_graphs([_good(x=x)]).x == -1).all()


def test_a_dataset_ends_at_its_length(tmp_path: Path) -> None:
    """A map-style one need not raise an IndexError behind its last graph; it was read on and on."""

    class Endless:
        def __len__(self) -> int:
            return 3

        def __getitem__(self, number: int) -> Data:
            assert number < 9
            return GOOD

    policy, model = enfa.NodeMarking(), enfa.DSGNN(2, 4, 2, num_layers=1)
    assert check_graphs(Endless()).num_graphs == 3
    assert enfa.make_plan(Endless(), policy, model).num_graphs == 3
    assert len(enfa.compile(Endless(), policy, model, progress=False)) == 3
    assert enfa.compile(Endless(), policy, model, out=tmp_path / "out", workers=1, progress=False).graphs == 3


def test_what_is_no_list_of_graphs() -> None:
    one = Batch.from_data_list([GOOD, GOOD])
    for graphs, message in (
        ((g for g in [GOOD]), r"got generator: pass list\(...\) of it$"),
        (iter([GOOD]), r"got list_iterator: pass list\(...\) of it$"),
        ({0: GOOD}.values(), r"got dict_values: pass list\(...\) of it$"),
        (GOOD, r"got a single Data object: wrap it as \[graph\]$"),
        (one, r"got a Batch of 2: batch.to_data_list\(\) takes it apart$"),
        (3, "got int$"),
    ):
        with pytest.raises(TypeError, match="^Expected a list of graphs, " + message):
            check_graphs(graphs)
    with pytest.raises(TypeError, match=r"^graph 1: Expected a single graph, got a Batch of 2: batch.to_data_list"):
        check_graphs([GOOD, one])
    assert check_graphs(one.to_data_list()).num_graphs == check_graphs((GOOD, GOOD)).num_graphs == 2
