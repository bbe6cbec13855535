from __future__ import annotations

import itertools

import numpy as np

import enfa
from enfa.report.program import program_for
from enfa.report.studies.sharding import good_size, inspect_shards
from enfa.testing import random_graphs


def test_rows_are_those_of_shards_that_are_compiled() -> None:
    graphs, policy = random_graphs(22, 7, seed=2, channels=2), enfa.NodeMarking()
    found = inspect_shards(graphs, policy, 3, batch_size=6, memory="256 KiB")
    program = program_for(graphs, policy, 3)
    assert [entry["shards"] for entry in found["sizes"]] == [1, 2, 4, 8, 16]
    for entry in found["sizes"]:
        ends = np.arange(entry["shards"] + 1) * 22 // entry["shards"]
        parts = [enfa.compile(graphs[a:b], policy, program, progress=False, unshared=None) for a, b in itertools.pairwise(ends)]
        assert entry["rows"] == sum(sum(part.cost().rows) for part in parts)
        assert entry["graphs"] == max(len(part) for part in parts)
        order, rows = np.random.default_rng(0).permutation(22), []
        for first in (0, 6, 12):
            batch = order[first : first + 6]
            shard = np.searchsorted(ends, batch, "right") - 1
            cut = [parts[s][batch[shard == s] - ends[s]] for s in np.unique(shard)]
            rows.append(sum(sum(plan.cost().rows) for plan in cut))
        assert entry["batch_rows"] == np.mean(rows)
    assert found["sizes"][0]["more_rows"] == 0 < found["sizes"][4]["more_rows"]
    assert found["shard_size"] == good_size(2**18, found["bytes_per_graph"], 22) < 22
    assert inspect_shards(graphs, policy, 3)["shard_size"] == 22, "no more than there are"


def test_sizes_are_round() -> None:
    assert [good_size(2**31, kb * 1e3, 10**6) for kb in (33, 1, 40_000, 10**7)] == [4000, 130_000, 3, 1]
    # 4067 fit: all where there are no more
    assert [good_size(2**31, 33e3, graphs) for graphs in (1113, 4067, 4068, 10**5)] == [1113, 4067, 4000, 4000]
