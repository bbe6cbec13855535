"""CSL, circular skip links (Murphy et al., 2019): 4-regular graphs, all alike to message passing."""

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs

__all__ = ["load_csl"]

NUM_NODES = 41
SKIPS = (2, 3, 4, 5, 6, 9, 11, 12, 13, 16)  # one class each; no two give isomorphic graphs
COPIES = 15


def load_csl(seed: int = 0) -> Benchmark:
    """150 generated graphs: a ring of 41 nodes, and from each node a link ``SKIPS[class]`` places ahead.

    Each class has 15 copies with its nodes shuffled; nodes carry no information. Accuracy over five
    stratified folds, the usual protocol. ``seed`` is that of the shuffles.
    """
    generator = np.random.default_rng(seed)
    ring = np.arange(NUM_NODES)
    edges = []
    for skip in SKIPS:
        forward = np.concatenate([np.stack([ring, (ring + step) % NUM_NODES], axis=1) for step in (1, skip)])
        both = np.concatenate([forward, forward[:, ::-1]])  # [164, 2]
        edges += [generator.permutation(NUM_NODES)[both] for _ in range(COPIES)]
    flat = FlatGraphs(
        source="CSL",
        num_nodes=np.full(len(edges), NUM_NODES),
        num_edges=np.array([len(e) for e in edges]),
        edges=np.concatenate(edges),
        x=np.zeros((NUM_NODES * len(edges), 1), dtype=np.int64),
    )
    labels = np.repeat(np.arange(len(SKIPS)), COPIES)
    return assemble("CSL", flat, labels, num_outputs=len(SKIPS), num_folds=5)
