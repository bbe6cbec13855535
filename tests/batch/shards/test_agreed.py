from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch_geometric.data import Data

import enfa


def _changed(graphs: list[Data], name: str, change: Callable) -> list[Data]:
    """With another value of the graphs of a later shard."""
    return [graph.clone().update({name: change(graph[name])}) if i >= 14 else graph for i, graph in enumerate(graphs)]


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("y", lambda y: y.double() / 3, "Expected 'y' of float32 of shape"),
        ("y", lambda y: y.repeat(2)[None], r"'y' of float32 of shape \[\], as in the first shard, got float32 of shape \[2\]"),
        ("y", lambda y: None, "got none"),
        ("heat", lambda h: None, r"Expected 'heat' of float32 of shape \[2\]"),
        ("heat", lambda h: h[:, :1], r"got float32 of shape \[1\]"),
        ("x", lambda x: x[:, :1], r"Expected 'x' of int64 of shape \[2\]"),
        ("edge_attr", lambda e: None, "Expected 'edge_attr' of int64"),
    ],
)
def test_later_shards_must_be_like_the_first(
    name: str, change: Callable, said: str, molecules: list[Data], shards: Callable, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=said) as error:
        shards(_changed(molecules, name, change), tmp_path / "out")
    assert str(error.value).startswith("graphs 14 to 20: ")


def test_types_that_hold_the_same_numbers_are_taken(
    molecules: list[Data], shards: Callable, undisturbed: Path, bytes_of: Callable, tmp_path: Path
) -> None:
    shards(_changed(molecules, "y", lambda y: y.double()), tmp_path / "out")
    assert bytes_of(tmp_path / "out") == bytes_of(undisturbed)


def test_a_graph_is_named_by_its_place_in_the_dataset(molecules: list[Data], shards: Callable, tmp_path: Path) -> None:
    wrong = [graph.clone() for graph in molecules]
    wrong[23].edge_index = wrong[23].edge_index + 100
    with pytest.raises(ValueError, match="graph 23: Expected 'edge_index' to name nodes"):
        shards(wrong, tmp_path / "out")


class FirstEdge(enfa.Policy):
    """Marks an end of the first edge, and nothing where there is none: then no subgraph of a shard may have a root."""

    def bag(self, graph: Any) -> Iterator[enfa.Subgraph]:
        if graph.edge_index.size:
            node = int(graph.edge_index[0, 0])
            yield enfa.Subgraph().mark_node(node).rooted_at(node)


def test_a_shard_without_anything_to_edit(molecules: list[Data], shards: Callable, tmp_path: Path) -> None:
    bare = [
        Data(x=g.x, edge_index=torch.empty(2, 0, dtype=torch.long), edge_attr=torch.empty(0, 2, dtype=torch.long), y=g.y,
             heat=g.heat) for g in molecules[:7]
    ]  # fmt: skip
    model = enfa.DSGNN([3, 2], 6, 2, 3, "gine", edge_channels=[3, 2], readout="root")
    graphs, policy = [g for g in molecules if g.num_edges][:7] + bare, FirstEdge()
    shards(graphs, tmp_path / "out", policy=policy, model=model)
    model.eval()
    found = [model(enfa.load_compiled(path)[:]) for path in sorted((tmp_path / "out").glob("*.enfa"))]
    expected = model(enfa.make_plan(graphs, policy, model, "full"))
    torch.testing.assert_close(torch.cat(found), expected, rtol=1e-5, atol=1e-5)


def test_a_policy_names_the_shard(molecules: list[Data], shards: Callable, tmp_path: Path) -> None:
    class Wrong(enfa.Policy):
        def bag(self, graph: Any) -> Iterator[enfa.Subgraph]:
            yield enfa.Subgraph().mark_node(0 if graph.position < 16 else 99)

    with pytest.raises(ValueError, match=r"graphs 14 to 20, here counted from 0: Wrong\(\): graph 2 has"):
        shards(molecules, tmp_path / "out", policy=Wrong())
