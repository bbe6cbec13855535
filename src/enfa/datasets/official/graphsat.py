"""EXP and CEXP (GNN-RNI, IJCAI 2021): pairs of SAT graphs that message passing cannot tell apart."""

from pathlib import Path

import numpy as np

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.official.fetch import ensure_files

__all__ = ["load_graphsat"]

URL = "https://github.com/ralphabb/GNN-RNI/raw/main/Data/{name}/raw/GRAPHSAT.txt"


def load_graphsat(name: str, root: Path) -> Benchmark:
    """EXP or CEXP: the tag of a node (0 literal, 1 clause) is its only feature; ten-fold accuracy.

    ``GRAPHSAT.txt`` gives the number of graphs; per graph a line ``num_nodes label``, then per node a line
    ``tag degree neighbour neighbour ...``.
    """
    folder = root / name / "raw"
    ensure_files(name, folder, ["GRAPHSAT.txt"], URL.format(name=name))
    path = folder / "GRAPHSAT.txt"
    try:
        numbers = list(map(int, path.read_text().split()))
    except ValueError as error:
        raise ValueError(f"{path}: expected whole numbers only ({error})") from error
    try:
        flat, labels, used = _parse(numbers, str(path))
    except IndexError as error:
        raise ValueError(f"{path} ends in the middle of a graph; it is cut short") from error
    if used != len(numbers):
        raise ValueError(f"{path} goes on after its last graph")
    return assemble(name, flat, labels, num_outputs=2, in_channels=[2])


def _parse(numbers: list[int], source: str) -> tuple[FlatGraphs, np.ndarray, int]:
    at = 1
    num_nodes, num_edges, labels = [], [], []
    tags: list[int] = []
    sources: list[int] = []
    targets: list[int] = []
    for _ in range(numbers[0]):
        count, label = numbers[at], numbers[at + 1]
        at += 2
        before = len(targets)
        for node in range(count):
            tag, degree = numbers[at], numbers[at + 1]
            at += 2 + degree
            tags.append(tag)
            sources.extend([node] * degree)
            targets.extend(numbers[at - degree : at])
        num_nodes.append(count)
        num_edges.append(len(targets) - before)
        labels.append(label)
    if at > len(numbers):
        raise IndexError(at)
    flat = FlatGraphs(
        source=source,
        num_nodes=np.array(num_nodes),
        num_edges=np.array(num_edges),
        edges=np.array([sources, targets]).T,
        x=np.array(tags),
    )
    return flat, np.array(labels), at
