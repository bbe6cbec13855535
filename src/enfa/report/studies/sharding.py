"""What sharing is lost when a dataset is compiled in shards: rows are shared within each, not between them."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.batch.shards.reading.cache import memory_of
from enfa.edits import Policy
from enfa.graphs.numbers import bytes_of
from enfa.nn.bag import compile
from enfa.plan.slicing.alone import Lists, merged, rows_by_graph
from enfa.report.program import program_for

__all__ = ["good_size", "inspect_shards", "rows_of_graphs", "rows_of_shards"]

COUNTS = (1, 2, 4, 8, 16, 32, 64)
_BATCHES = 8
_WINDOW, _TOGETHER = 4, 4  # a window has a quarter of the memory (``enfa.batch.shards.dataset``), and should have some shards


def rows_of_graphs(compiled: CompiledDataset) -> list[tuple[Lists, int]]:
    """For every step that passes messages the rows of each graph, and how many rows there are."""
    assert compiled.rows is not None and compiled.sources is not None
    found = rows_by_graph(
        compiled.rows, compiled.program, compiled.node_ptr, compiled.sub_ptr, compiled.sources.pair_ptr
    )  # fmt: skip
    return [
        (lists, len(rows.keys))
        for lists, rows, step in zip(found, compiled.rows, compiled.program.steps)
        if step.op == "propagate"
    ]


def rows_of_shards(of_graphs: list[tuple[Lists, int]], graphs: np.ndarray, ends: np.ndarray) -> int:
    """The rows of all steps, each once for every shard that has it. ``graphs[ends[i-1]:ends[i]]``: those of a shard."""
    total = 0
    for (ptr, row, _), count in of_graphs:
        length = np.diff(ptr)[graphs]
        at = np.concatenate([[0], np.cumsum(length)])
        chosen = row[np.repeat(ptr[graphs] - at[:-1], length) + np.arange(at[-1])]
        shards = at[np.concatenate([[0], ends])]
        total += int(merged([(shards, chosen, np.ones(len(chosen), np.int64))], count)[0][-1])
    return total


def _ends(graphs: int, shards: int) -> np.ndarray:
    return np.arange(1, shards + 1) * graphs // shards


def _in_batches(of_graphs: list[tuple[Lists, int]], graphs: int, shards: int, batch_size: int) -> float:
    """Rows of random batches of graphs of all shards, on average."""
    order, size = np.random.default_rng(0).permutation(graphs), min(batch_size, graphs)
    found = []
    for first in range(0, min(_BATCHES * size, graphs - size + 1), size):
        batch = np.sort(order[first : first + size])  # by shard
        found.append(rows_of_shards(of_graphs, batch, np.searchsorted(batch, _ends(graphs, shards))))
    return float(np.mean(found))


def good_size(memory: int, per_graph: float, graphs: int) -> int:
    """Graphs of a shard of which a window has four: as few as mix graphs well, because more share less. All, where they fit."""
    size = max(int(memory / _WINDOW / _TOGETHER / per_graph), 1)
    if size >= graphs:
        return graphs
    digits = 10 ** max(len(str(size)) - 2, 0)
    return size // digits * digits


def inspect_shards(
    graphs: Sequence[Data], policy: Policy, layers: int, batch_size: int = 128, memory: int | str = "2 GiB"
) -> dict[str, Any]:
    """Rows of the dataset, and of random batches, in 1 to 64 shards; and a good size of shards for the memory of training.

    ``rows``: of the steps that pass messages, all together. A batch that has graphs of several shards has a row once for each.
    """
    compiled = compile(graphs, policy, program_for(graphs, policy, layers), progress=False, unshared=None)
    of_graphs, every = rows_of_graphs(compiled), np.arange(len(compiled))
    found = []
    for shards in COUNTS:
        if shards <= len(compiled):
            found.append({
                "shards": shards, "graphs": -(-len(compiled) // shards),
                "rows": rows_of_shards(of_graphs, every, _ends(len(compiled), shards)),
                "batch_rows": _in_batches(of_graphs, len(compiled), shards, batch_size),
            })  # fmt: skip
    rows = found[0]["rows"]
    per_graph = memory_of(compiled) / len(compiled)
    return {
        "sizes": [entry | {"more_rows": entry["rows"] / max(rows, 1) - 1,
                           "more_batch_rows": entry["batch_rows"] / max(found[0]["batch_rows"], 1) - 1} for entry in found],
        "bytes_per_graph": per_graph, "memory": bytes_of(memory),
        "shard_size": good_size(bytes_of(memory), per_graph, len(compiled)),
    }  # fmt: skip
