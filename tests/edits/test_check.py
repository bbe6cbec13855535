"""Edits that policies of one's own may get wrong."""

from dataclasses import replace

import numpy as np
import pytest

import enfa
from enfa.edits.check import check_edits
from enfa.graphs import check_graphs
from enfa.testing import random_graphs


def test_a_subgraph_has_all_its_roots_or_none() -> None:
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    edits = enfa.NodeMarking().edits(graphs)
    root = np.repeat(np.arange(graphs.num_nodes)[:, None], 2, axis=1)
    root[1] = -1
    check_edits(graphs, replace(edits, root=root), "mine")
    root[3, 1] = -1
    place = 3 - int(edits.sub_ptr[edits.graph[3]])
    with pytest.raises(ValueError, match=rf"mine: graph {edits.graph[3]}: subgraph {place} has some roots and lacks"):
        check_edits(graphs, replace(edits, root=root), "mine")


@pytest.mark.parametrize("name", ["sub_ptr", "node_ptr", "node", "node_value", "edge_ptr", "edge", "edge_value", "root"])
def test_numbers_are_integers(name: str) -> None:
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    edits = enfa.NodeMarking().edits(graphs)
    wrong = replace(edits, **{name: getattr(edits, name).astype(np.float64)})
    with pytest.raises(TypeError, match=rf"^mine: Expected '{name}' of the edits to hold integers, got float64$"):
        check_edits(graphs, wrong, "mine")


@pytest.mark.parametrize("name", ["marks", "edge_marks"])
@pytest.mark.parametrize("table", [[[0.0], [np.nan]], [[np.inf]], [0.0, 1.0], np.zeros((0, 1))])
def test_marks_are_finite_tables(name: str, table: object) -> None:
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    wrong = replace(enfa.NodeMarking().edits(graphs), **{name: np.asarray(table, np.float32)})
    with pytest.raises(ValueError, match=rf"^mine: Expected '{name}' to be finite numbers of shape \[values, channels\]"):
        check_edits(graphs, wrong, "mine")


@pytest.mark.parametrize(
    "name", ["sub_ptr", "node_ptr", "node", "node_value", "edge_ptr", "edge", "edge_value", "keeps", "root"]
)
def test_arrays_fit_together(name: str) -> None:
    """The full plan left out graphs without a bag, and one value was taken for all."""
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    edits = enfa.NodeMarking().edits(graphs)
    edits = replace(edits, keeps=np.zeros(edits.num_subgraphs, bool))
    own = getattr(edits, name)
    none = np.zeros(1, own.dtype)
    for wrong in (own[:1], np.append(own, own[-1:], axis=0), own.reshape(1, -1), own[:0]) if len(own) else (none,):
        message = r"^mine: Expected '\w+' of the edits to (have \d+ entries|begin with 0 and never to fall), got shape \["
        with pytest.raises(ValueError, match=message):
            check_edits(graphs, replace(edits, **{name: wrong}), "mine")


@pytest.mark.parametrize("name", ["sub_ptr", "node_ptr", "edge_ptr"])
def test_pointers_begin_with_0_and_never_fall(name: str) -> None:
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    edits = enfa.NodeMarking().edits(graphs)
    own = getattr(edits, name)
    for wrong in (own + 1, own[::-1] - own[-1] + 1, np.where(np.arange(len(own)) == 1, 99, own)):
        with pytest.raises(ValueError, match=rf"^mine: Expected '{name}' of the edits to begin with 0 and never to fall"):
            check_edits(graphs, replace(edits, **{name: wrong}), "mine")


def test_what_is_kept_is_true_or_false() -> None:
    """Numbers, 0 and 1, chose subgraphs by their numbers in some plans."""
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    edits = enfa.NodeMarking().edits(graphs)
    with pytest.raises(TypeError, match=r"^mine: Expected 'keeps' of the edits to hold true and false, got int64$"):
        check_edits(graphs, replace(edits, keeps=np.zeros(edits.num_subgraphs, np.int64)), "mine")


def test_what_is_no_edits_at_all() -> None:
    graphs = check_graphs(random_graphs(3, 5, seed=1))
    with pytest.raises(TypeError, match=r"^mine: Expected edits\(graphs\) to return Edits, got NoneType$"):
        check_edits(graphs, None, "mine")  # type: ignore[arg-type]
    three = replace(enfa.NodeMarking().edits(graphs), root=np.zeros((graphs.num_nodes, 3), np.int64))
    with pytest.raises(ValueError, match=rf"^mine: Expected 'root' of the edits of shape \[{graphs.num_nodes}, 1 or 2\]"):
        check_edits(graphs, three, "mine")
