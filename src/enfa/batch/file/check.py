"""Whether the arrays of a stored file fit together, so that no kernel reads outside of them. Cost: some passes over each.

The one exception is that of edits (files without rows), of which it is asked by sorting whether a subgraph edits a node twice.
"""

from dataclasses import fields

import numpy as np

from enfa.batch.file._packing import sum_runs
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.forms import FEATURES, Form
from enfa.batch.file.header import Header
from enfa.batch.file.shapes import Arrays, Sizes, forms_of, has_rows
from enfa.edits import Edits
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet
from enfa.plan.step import Program

__all__ = ["check_arrays", "graphs_from"]


def _check_numbers(name: str, array: np.ndarray, form: Form, sizes: Sizes) -> None:
    """Against the range that its form has."""
    if form.rises_to is not None:
        end = sizes(form.rises_to)
        if array[0] != 0 or array[-1] != end or (array[1:] < array[:-1]).any():
            raise CorruptFileError(f"Expected '{name}' to rise from 0 to {end} ({form.rises_to}), got other numbers")
    if array.dtype.kind == "f":
        if form.dtypes == FEATURES and not np.isfinite(array).all():
            raise CorruptFileError(f"Expected '{name}' to be finite, got NaN or inf")
        return
    if form.least is None or not array.size:
        return
    if array.dtype.kind == "b":
        array = array.view(np.uint8)  # whose bytes may be anything
    low, high = int(array.min()), int(array.max())
    least, most = sizes(form.least), None if form.below is None else sizes(form.below) - 1
    if low < least or (most is not None and high > most):
        limit = f"at least {least}" if most is None else f"from {least} to {most}"
        raise CorruptFileError(f"Expected '{name}' {limit}, got {low} to {high}")
    if form.adds_to is not None:
        # each on its own first: their sum might wrap round
        total = sizes(form.adds_to)
        if high > total or int(array.sum()) != total:
            raise CorruptFileError(f"Expected '{name}' to add up to {total} ({form.adds_to}), got other lengths")


def _sums(lengths: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The sums of so many numbers, one behind the other."""
    found = np.empty(len(lengths), np.int64)
    sum_runs(lengths, numbers, found)
    return found


def _check_counts(program: Program, arrays: Arrays) -> None:
    """The rows of a graph stand for all of its pairs, and those that a subgraph pools for all of its own."""
    nodes, subs = arrays["sources.node_ptr"], arrays["sources.sub_ptr"]
    nodes_of = np.repeat(np.diff(nodes), np.diff(subs))
    if (arrays["sources.sub_size"] > nodes_of).any():
        raise CorruptFileError("Expected 'sources.sub_size' up to the nodes of each graph, got more")
    if "sources.root" in arrays and (arrays["sources.root"] >= nodes_of[:, None]).any():
        raise CorruptFileError("Expected 'sources.root' within the nodes of each graph, got others")
    pairs = _sums(np.diff(subs), arrays["sources.sub_size"])
    for number, step in enumerate(program.shared):
        listed = step.kind == "pairs" and number in program.handed_on
        if listed and len(arrays[f"step{number}.place"]) != pairs.sum():
            raise CorruptFileError(f"Expected a row of every pair in 'step{number}.place', got another number of them")
        name = f"step{number}.count"
        if name in arrays and (_sums(np.diff(arrays[f"{name}_ptr"]), arrays[name]) != pairs).any():
            raise CorruptFileError(f"Expected '{name}' to add up to the pairs of each graph, got other numbers")
        keys, lists = f"step{number}.keys", f"step{number}.lists"
        if f"{lists}.b" in arrays:
            of_list = _sums(arrays[f"{lists}.length"], arrays[f"{lists}.b"])
            of_row = _sums(arrays[f"{keys}.length"], of_list[arrays[f"{keys}.a"]])
            if (of_row[arrays[f"step{number}.place"]] != arrays["sources.sub_size"]).any():
                raise CorruptFileError(f"Expected '{lists}.b' to add up to the nodes of each subgraph, got other numbers")


def _check_categories(arrays: Arrays) -> None:
    """The last columns of features that are categories, beside floats: they reach what is said, by which models embed them."""
    place = "sources" if has_rows(arrays) else "graphs"
    x, largest = arrays[f"{place}.x"], arrays[f"{place}.categories"]
    if len(largest) > x.shape[1] or (x[:, x.shape[1] - len(largest) :] > largest).any():
        raise CorruptFileError(f"Expected columns of '{place}.x' up to '{place}.categories', got others")


def graphs_from(arrays: Arrays) -> tuple[GraphSet, Edits]:
    """What every batch is planned of, in files without rows."""
    names = [f.name for f in fields(GraphSet) if f.name != "first"]
    graphs = GraphSet(**{name: arrays.get(f"graphs.{name}") for name in names})  # type: ignore[arg-type]
    return graphs, Edits(**{f.name: arrays.get(f"edits.{f.name}") for f in fields(Edits)})  # type: ignore[arg-type]


def _check_graphs(arrays: Arrays) -> None:
    """What the loops over graphs and edits take for granted, in files without rows."""
    graphs, edits = graphs_from(arrays)
    if (graphs.dst[1:] < graphs.dst[:-1]).any():
        raise CorruptFileError("Expected 'graphs.dst' to rise, got other numbers")
    of_edge = graphs.graph[graphs.dst]
    if (graphs.graph[graphs.src] != of_edge).any():
        raise CorruptFileError("Expected 'graphs.src' within the graph that 'graphs.dst' is in, got an edge between two")
    if (graphs.order < graphs.edge_ptr[of_edge]).any() or (graphs.order >= graphs.edge_ptr[of_edge + 1]).any():
        raise CorruptFileError("Expected 'graphs.order' within the edges of each graph, got others")
    if not graphs.num_nodes and edits.root is not None and (edits.root >= 0).any():
        raise CorruptFileError("Expected no root in 'edits.root' where there are no nodes, got one")
    try:
        check_edits(graphs, edits, "edits")
    except ValueError as error:
        raise CorruptFileError(str(error)) from error


def _check_both(arrays: Arrays) -> None:
    """Rows and graphs of the same file count the same nodes, subgraphs and pairs."""
    graphs, edits = graphs_from(arrays)
    same = np.array_equal(arrays["sources.node_ptr"], graphs.node_ptr) and np.array_equal(
        arrays["sources.sub_ptr"], edits.sub_ptr
    )
    if not same or not np.array_equal(arrays["sources.sub_size"], edits.sizes(graphs)):
        raise CorruptFileError("Expected the same nodes and subgraphs in 'graphs', 'edits' and 'sources', got others")


def check_arrays(header: Header, arrays: Arrays) -> None:
    """The numbers of arrays whose shapes have been checked."""
    forms = {name: form for name, form in forms_of(header.program, arrays).items() if name in arrays}
    sizes = Sizes(header, {name: array.shape for name, array in arrays.items()})
    pointers = [name for name, form in forms.items() if form.rises_to is not None]
    for name in pointers:
        _check_numbers(name, arrays[name], forms[name], sizes)
    sizes.add(arrays)
    for name, form in forms.items():
        if name not in pointers:
            _check_numbers(name, arrays[name], form, sizes)
    _check_categories(arrays)
    if has_rows(arrays):
        _check_counts(header.program, arrays)
    if "graphs.node_ptr" in arrays:
        _check_graphs(arrays)
    if has_rows(arrays) and "graphs.node_ptr" in arrays:
        _check_both(arrays)
