from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import fields
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Batch, Data

from enfa.batch.shards.stream import Block, blocks, shard_sizes
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.streams import FlatStream
from enfa.testing import degenerate_graphs, random_graphs


def same(one: Block, other: Block) -> bool:
    for field in fields(one.graphs):
        a, b = getattr(one.graphs, field.name), getattr(other.graphs, field.name)
        assert type(a) is type(b) and np.array_equal(a, b) and getattr(a, "dtype", 0) == getattr(b, "dtype", 0), field.name
    assert (one.y is None) == (other.y is None) and (one.y is None or torch.equal(one.y, other.y))  # type: ignore[arg-type]
    return all(torch.equal(one.attr[name], other.attr[name]) for name in one.attr | other.attr)


def test_a_block_is_sent_as_it_is() -> None:
    for block in blocks(random_graphs(60, 20, channels=[3, 2], edge_channels=[3, 2]), repeat(30)):
        assert isinstance(block, Block) and block.graphs.num_edges > 256  # which one byte does not hold
        sent = pickle.dumps(block)
        assert same(pickle.loads(sent), block)
        assert len(sent) < 0.5 * sum(array.nbytes for array in vars(block.graphs).values() if isinstance(array, np.ndarray))


@pytest.mark.parametrize("floats", [False, True])
def test_arrays_and_graphs_give_the_same(floats: bool) -> None:
    channels: Any = 3 if floats else [3, 2]
    graphs = [*random_graphs(20, 8, channels=channels, edge_channels=[3, 2]), *degenerate_graphs(channels, [3, 2]).values()]
    x = torch.cat([graph.x for graph in graphs])
    if floats:
        x[3] = -0.0
        graphs[0].x = x[: len(graphs[0].x)]
    edges = torch.cat([graph.edge_index for graph in graphs], 1).T
    flat = FlatGraphs(
        "some", np.array([g.num_nodes for g in graphs]), np.array([g.num_edges for g in graphs]), edges.numpy(), x.numpy(),
        torch.cat([graph.edge_attr for graph in graphs]).numpy(),
    )  # fmt: skip
    found: list[Any] = [list(blocks(source, repeat(6))) for source in (graphs, FlatStream(flat), iter(FlatStream(flat)))]
    assert len(found[0]) == len(found[1]) > 3
    for one, *others in zip(*found, strict=True):
        assert all(same(one, other) for other in others)


def test_arrays_are_checked_as_graphs_are() -> None:
    ones = np.ones(3, np.int64)
    for x, said in (([[0.0], [np.nan], [0.0]], "graph 1: Expected 'x' to be finite"), ([[1], [2], [-1]], "graph 2: .*>= 0")):
        flat = FlatGraphs("some", ones, 0 * ones, np.empty((0, 2), int), np.array(x))
        with pytest.raises(ValueError, match=said):
            list(blocks(FlatStream(flat), repeat(9)))


class Lines:
    """Of text, each of which becomes a path."""

    def raw_blocks(self, sizes: Any) -> Iterator[list[int]]:
        for block, _ in zip(([1, 2, 3], [4]), sizes):
            yield block

    def graphs_of(self, raw: list[int]) -> list[Data]:
        ends = [torch.arange(n - 1) for n in raw]
        return [Data(x=torch.zeros(n, 1).long(), edge_index=torch.stack([e, e + 1])) for n, e in zip(raw, ends)]


def test_workers_make_graphs_of_lines(shards: Callable, bytes_of: Callable, tmp_path: Path) -> None:
    import enfa

    model = enfa.DSGNN([1], 4, 2, 2, "gin")
    first, second = blocks(Lines(), repeat(3))
    assert second.load().graphs.first == 3 and first.load().graphs.num_graphs == 3
    shards(Lines(), tmp_path / "a", model=model, shard_size=3, workers=2)
    shards(Lines().graphs_of([1, 2, 3, 4]), tmp_path / "b", model=model, shard_size=3)
    assert bytes_of(tmp_path / "a") == bytes_of(tmp_path / "b")


def test_sizes() -> None:
    sizes, total = shard_sizes(range(10), 4, None)
    assert list(sizes) == [2, 3, 2, 3] and total == 10
    assert next(iter(shard_sizes(iter([]), None, 9)[0])) == 9


@pytest.mark.parametrize(
    ("given", "said"),
    [(Data(), "a single Data"), (Batch.from_data_list([Data(x=torch.ones(1, 1))]), "a Batch of 1"), (3, "int")],
)
def test_what_is_no_stream_is_refused(given: Any, said: str) -> None:
    with pytest.raises(TypeError, match=f"Expected an iterable of graphs, got {said}"):
        next(blocks(given, repeat(2)))
