"""Tables of marks: their precision, and those of graphs that are added to others, numbered as before, new ones behind."""

from dataclasses import replace

import numpy as np

from enfa.edits.edits import DELETE, Edits
from enfa.graphs.join import added_rows

__all__ = ["marks_beside", "with_marks"]


def marks_beside(edits: Edits, x: np.ndarray) -> Edits:
    """Marks that go together with these features, where no model says its precision: float64 beside float64 only."""
    if x.dtype == np.float64:
        return edits
    short = (marks.astype(np.float32, copy=False) for marks in (edits.marks, edits.edge_marks))
    return replace(edits, **dict(zip(("marks", "edge_marks"), short)))


def _translated(old: np.ndarray, new: np.ndarray, value: np.ndarray, what: str) -> tuple[np.ndarray, np.ndarray]:
    """``(table, value)``: the old mark table with unknown rows behind, and edits' values that point into it."""
    if np.array_equal(old, new):
        return old, value
    if not np.array_equal(old[0], new[0]):
        raise ValueError(f"Expected '{what}' to begin with {old[0].tolist()}, as compiled, got {new[0].tolist()}")
    # what is not marked has number 0, which no mark gets, whatever it means
    table, place = added_rows(old[1:], new[1:], what)
    return np.concatenate([old[:1], table]), np.where(value == DELETE, DELETE, np.append(0, place + 1)[value])


def with_marks(edits: Edits, marks: np.ndarray, edge_marks: np.ndarray) -> Edits:
    """The same edits over mark tables that begin with the given ones.

    A policy may take its marks from the graphs that it sees (:class:`~enfa.EdgeMarking` with degrees does); other graphs
    then have other tables.
    """
    marks, node_value = _translated(marks, edits.marks, edits.node_value, "marks")
    edge_marks, edge_value = _translated(edge_marks, edits.edge_marks, edits.edge_value, "edge_marks")
    return replace(edits, marks=marks, edge_marks=edge_marks, node_value=node_value, edge_value=edge_value)
