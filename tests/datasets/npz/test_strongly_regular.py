from pathlib import Path

import numpy as np
import pytest

from enfa.datasets import load, to_npz
from enfa.datasets.npz.strongly_regular import read_graph6


def test_all_parts_are_all_graphs(data: Path) -> None:
    found = load("SR25", data)
    assert (found.metric, found.num_outputs, len(found), found.labels.tolist()) == ("accuracy", 15, 15, list(range(15)))
    assert all(part.tolist() == list(range(15)) for part in found.split().values())


def test_a_file_with_both_directions_says_so(data: Path, tmp_path: Path) -> None:
    known = load("SR25", data)
    to_npz(known.graphs, tmp_path / "SR25.npz")
    assert [graph.num_edges for graph in load("SR25", tmp_path).graphs] == [graph.num_edges for graph in known.graphs]


def graph6(n: int, edges: set[tuple[int, int]]) -> str:
    bits = [int((a, b) in edges or (b, a) in edges) for b in range(n) for a in range(b)]
    bits += [0] * (-len(bits) % 6)
    return chr(63 + n) + "".join(chr(63 + int("".join(map(str, bits[i : i + 6])), 2)) for i in range(0, len(bits), 6))


def test_reads_the_raw_file_and_refuses_a_damaged_one(data: Path, tmp_path: Path) -> None:
    known = load("SR25", data)
    raw = tmp_path / "SR25" / "raw" / "sr251256.g6"
    raw.parent.mkdir(parents=True)
    every = [{(a, b) for a, b in graph.edge_index.T.tolist()} for graph in known.graphs]
    raw.write_text("\n".join(graph6(25, edges) for edges in every))
    found = load("SR25", tmp_path)
    assert [{tuple(e) for e in graph.edge_index.T.tolist()} for graph in found.graphs] == every
    a, b = next(iter(every[3]))
    every[3] -= {(a, b), (b, a)}
    raw.write_text("\n".join(graph6(25, edges) for edges in every))
    with pytest.raises(ValueError, match="graph 3 is not strongly regular; is the file damaged"):
        load("SR25", tmp_path)
    raw.write_text("")
    with pytest.raises(ValueError, match="expected 15 graphs of 25 nodes"):
        load("SR25", tmp_path)
    raw.unlink()
    with pytest.raises(FileNotFoundError, match=r"SR25.npz or .*sr251256.g6: neither is there"):
        load("SR25", tmp_path)


def test_graph6_of_known_graphs(tmp_path: Path) -> None:
    path = tmp_path / "some.g6"
    path.write_text("@\nDQc\nC~\n")  # one node; the example of the format's description; K4
    found = read_graph6(path)
    assert found.num_nodes.tolist() == [1, 5, 4] and found.num_edges.tolist() == [0, 8, 12]
    assert {tuple(sorted(e)) for e in found.edges[:8].tolist()} == {(0, 2), (0, 4), (1, 3), (3, 4)}
    path.write_text("D")
    with pytest.raises(ValueError, match="graph6 format, got 'D'"):
        read_graph6(path)
    assert np.array_equal(found.x, np.zeros((10, 1)))
