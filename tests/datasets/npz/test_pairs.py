from pathlib import Path

import numpy as np
import pytest

from enfa.datasets import load, load_brec


def test_pairs_and_their_categories(data: Path) -> None:
    found = load_brec(data)
    assert (len(found), len(found.graphs)) == (400, 800)
    counts = {name: len(found.of(name)) for name in found.categories}
    assert counts == {
        "Basic": 60, "Regular": 100, "Extension": 100, "CFI": 100, "4-Vertex_Condition": 20, "Distance_Regular": 20,
    }  # fmt: skip
    for one, other in found:
        degrees = [np.sort(np.bincount(g.edge_index[0], minlength=g.num_nodes)) for g in (one, other)]
        assert np.array_equal(*degrees) and one.y is None and one.x.shape == (one.num_nodes, 1)
    with pytest.raises(ValueError, match=r"expected one of the categories Basic, .*, got 'basic'"):
        found.of("basic")


def test_it_is_no_benchmark_to_train_on(data: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"BREC has pairs of graphs and no labels to learn: enfa.datasets.load_brec"):
        load("BREC", data)
    with pytest.raises(FileNotFoundError, match=r"BREC.npz: not there; its official files hold pickled objects"):
        load_brec(tmp_path)
