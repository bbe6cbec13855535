"""The worked example of ``plan/table.py``, number by number, and the checks of a plan."""

from collections import Counter
from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

import enfa
from enfa.plan.table import Plan, Sums
from enfa.testing import random_graphs


def _example() -> Plan:
    edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
    path = Data(x=torch.zeros(3, 1), edge_index=edges)
    return enfa.make_plan([path], enfa.NodeMarking(), enfa.Spec(1))


def test_worked_example() -> None:
    """Rows may be numbered in another order than the docstring's: they are told apart by their keys."""
    plan = _example()
    # table 0: "unmarked" and "marked"
    start = [plan.marks[m].item() for m in plan.mark.tolist()]
    assert sorted(start) == [0.0, 1.0] and plan.x[plan.feature].tolist() == [[0.0], [0.0]]

    (layer,) = plan.layers
    ptr, incoming = layer.links.in_ptr.tolist(), [start[r] for r in layer.links.in_row.tolist()]
    keys = [
        (start[own], *sorted(incoming[ptr[r] : ptr[r + 1]])) for r, own in enumerate(layer.links.self_row.tolist())
    ]
    end, end_marked, middle_by_end, end_by_middle, middle_marked = (
        (0.0, 0.0), (1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 1.0), (1.0, 0.0, 0.0),
    )  # fmt: skip
    assert dict(zip(keys, layer.copies.tolist())) == {
        end: 2, end_marked: 2, middle_by_end: 2, end_by_middle: 2, middle_marked: 1,
    }  # fmt: skip
    assert len(keys) == 5 and layer.source is None and layer.context is None
    assert (plan.num_pairs, len(layer.links.in_row)) == (9, 7)

    readout = plan.readout
    assert readout.base_row is not None
    assert [keys[r] for r in readout.base_row.tolist()] == [end, end]
    first, second, third = readout.sub_delta.tolist()
    assert first == third != second and len(readout.delta.ptr) == 3
    ptr = readout.delta.ptr.tolist()
    entries = [(keys[r], c) for r, c in zip(readout.delta.row.tolist(), readout.delta.count.tolist())]
    assert dict(entries[ptr[first] : ptr[first + 1]]) == {end: -1, end_marked: 1, middle_by_end: 1}
    assert dict(entries[ptr[second] : ptr[second + 1]]) == {end: -2, end_by_middle: 2, middle_marked: 1}
    assert readout.sub_size.tolist() == [3, 3, 3] and readout.sub_graph.tolist() == [0, 0, 0]


def test_worked_example_as_printed() -> None:
    """The arrays that the docstring prints, in its order."""
    plan = _example()
    links = plan.layers[0].links
    assert plan.mark.tolist() == [0, 1]
    assert links.self_row.tolist() == [0, 1, 0, 1, 0]
    assert links.in_ptr.tolist() == [0, 1, 2, 4, 6, 7]
    assert links.in_row.tolist() == [0, 0, 0, 1, 0, 0, 1]
    assert plan.layers[0].copies.tolist() == [2, 2, 2, 1, 2]
    assert plan.readout.base_row is not None and plan.readout.base_row.tolist() == [0, 0]
    assert plan.readout.sub_delta.tolist() == [0, 1, 0]
    delta = plan.readout.delta
    pairs = list(zip(delta.row.tolist(), delta.count.tolist()))
    assert pairs[: delta.ptr[1]] == [(0, -1), (1, 1), (2, 1)]
    assert pairs[delta.ptr[1] :] == [(0, -2), (3, 1), (4, 2)]


@pytest.mark.parametrize("kind", ["full", "ego", "distinct"])
@pytest.mark.parametrize("context", [None, "input", "output"])
def test_copies_add_up_to_the_conventional_rows(kind: str, context: str | None) -> None:
    """And the copies of a table are those of the next, summed along ``previous``."""
    spec = enfa.Spec(3, context, context is not None)
    graphs = random_graphs(4, 7, seed=2)
    plan = enfa.make_plan(graphs, enfa.NodeDeletion(), spec, kind)
    pairs = sum(g.num_nodes * (g.num_nodes - 1) for g in graphs)
    assert plan.num_pairs == pairs
    for layer in plan.layers:
        assert int(layer.copies.sum()) == pairs and int(layer.copies.min()) >= 0
        if layer.context is not None:
            assert int(layer.context.copies.sum()) == sum(g.num_nodes for g in graphs)
    if kind == "distinct" and context is None:
        for before, layer in zip(plan.layers, plan.layers[1:]):
            summed = torch.zeros_like(before.copies).index_add_(0, layer.previous, layer.copies)
            assert torch.equal(summed, before.copies)


def _broken(plan: Plan, change: str) -> Plan:
    """A plan in which one array is wrong."""
    first, readout = plan.layers[0], plan.readout
    rows = first.links.num_rows

    def layer(**changes: object) -> Plan:
        return replace(plan, layers=[replace(first, **changes), *plan.layers[1:]])

    def links(**changes: object) -> Plan:
        return layer(links=replace(first.links, **changes))

    links_, context, delta = first.links, first.context, readout.delta
    assert context is not None and context.links is not None and first.context_row is not None
    return {
        "layers": lambda: replace(plan, layers=plan.layers[:1]),
        "feature": lambda: replace(plan, feature=plan.feature + len(plan.x)),
        "mark": lambda: replace(plan, mark=plan.mark - 1),
        "self_row": lambda: links(self_row=links_.self_row + 1000),
        "in_row": lambda: links(in_row=links_.in_row - 1000),
        "in_edge": lambda: links(in_edge=links_.in_edge + 1000),
        "in_edge shape": lambda: links(in_edge=links_.in_edge[:-1]),
        "in_ptr length": lambda: links(in_ptr=links_.in_ptr[:-1]),
        "in_ptr end": lambda: links(in_ptr=links_.in_ptr - 1),
        "in_ptr falls": lambda: links(in_ptr=torch.cat([links_.in_ptr[:1], links_.in_ptr[1:].flip(0)])),
        "copies": lambda: layer(copies=first.copies[:-1]),
        "source": lambda: layer(source=torch.arange(rows) + rows),
        "context_row": lambda: layer(context_row=first.context_row + 1000),
        "context sums": lambda: layer(
            context=replace(context, sums=replace(context.sums, row=context.sums.row + 1000))
        ),
        "context links": lambda: layer(
            context=replace(context, links=replace(context.links, in_row=context.links.in_row + 1000))
        ),
        "base_row": lambda: replace(plan, readout=replace(readout, base_row=readout.base_row + 1000)),
        "delta": lambda: replace(plan, readout=replace(readout, delta=replace(delta, row=delta.row - 1))),
        "delta ptr": lambda: replace(plan, readout=replace(readout, delta=replace(delta, ptr=delta.ptr + 1))),
        "sub_delta": lambda: replace(plan, readout=replace(readout, sub_delta=readout.sub_delta + 1000)),
    }[change]()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("layers", "Expected 2 layers, got 1"),
        ("feature", r"Expected 'feature' from 0 to \d+, got \d+ to \d+"),
        ("mark", r"Expected 'mark' from 0 to 1, got -1 to 0"),
        ("self_row", r"Expected 'layer 1.links.self_row' from 0 to \d+, got 10\d\d to 10\d\d"),
        ("in_row", r"Expected 'layer 1.links.in_row' from 0 to \d+, got -1000 to"),
        ("in_edge", r"Expected 'layer 1.links.in_edge' from 0 to \d+, got 10\d\d to"),
        ("in_edge shape", r"Expected 'layer 1.links.in_edge' of shape \[\d+\], got \[\d+\]"),
        ("in_ptr length", r"Expected 'layer 1.links.in_ptr' of length \d+, got \d+"),
        ("in_ptr end", r"Expected 'layer 1.links.in_ptr' to rise from 0 to \d+, got \[-1"),
        ("in_ptr falls", r"Expected 'layer 1.links.in_ptr' to rise from 0 to"),
        ("copies", r"Expected 'layer 1.copies' of length \d+, got \d+"),
        ("source", r"Expected 'layer 1.source' from 0 to"),
        ("context_row", r"Expected 'layer 1.context_row' from 0 to \d+, got 10\d\d to"),
        ("context sums", r"Expected 'layer 1.context.row' from 0 to \d+, got 10\d\d to"),
        ("context links", r"Expected 'layer 1.context.links.in_row' from 0 to \d+, got 10\d\d to"),
        ("base_row", r"Expected 'base_row' from 0 to \d+, got 10\d\d to"),
        ("delta", r"Expected 'delta.row' from 0 to \d+, got -1 to"),
        ("delta ptr", r"Expected 'delta.ptr' to rise from 0 to \d+, got \[1, "),
        ("sub_delta", r"Expected 'sub_delta' from 0 to \d+, got 10\d\d to"),
    ],
)
def test_check_names_the_array(change: str, message: str) -> None:
    graphs = random_graphs(3, 6, seed=2, edge_channels=[2])
    plan = enfa.make_plan(graphs, enfa.NodeMarking(), enfa.Spec(2, "output", True, edge_attr=True))
    plan.check()
    with pytest.raises(ValueError, match=message):
        _broken(plan, change).check()


def test_to_moves_every_tensor() -> None:
    spec = enfa.Spec(2, "input", True, degrees=True, edge_attr=True, share="graph")
    plan = enfa.make_plan(random_graphs(3, 6, edge_channels=[2]), enfa.NodeMarking(), spec)
    moved = plan.to("meta")
    assert Counter(t.device.type for t in moved.tensors())["cpu"] == 0
    assert plan.device.type == "cpu" and moved.device.type == "meta"
    assert len(plan.tensors()) > 20 and moved.spec == plan.spec
    again = plan.to("cpu")
    assert torch.equal(again.layers[1].links.in_row, plan.layers[1].links.in_row)


def test_what_int32_cannot_hold_is_refused() -> None:
    """Never wrapped round."""
    with pytest.raises(ValueError, match=r"fewer than 2\^31 rows and messages in a plan, got 3000000000 in 'count'"):
        Sums(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([3 * 10**9]))
