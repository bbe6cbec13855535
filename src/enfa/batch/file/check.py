"""Whether the arrays of a stored file fit together, so that no kernel reads outside of them. Cost: some passes over each.

The one exception is that of edits (files without rows), of which it is asked by sorting whether a subgraph edits a node twice.
"""

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from enfa.batch.file._packing import sum_runs
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.forms import ANY, FEATURES, MORE, Form, graph_forms, own_forms, row_forms, source_forms
from enfa.batch.file.header import Header
from enfa.edits import Edits
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet
from enfa.plan.step import Program

__all__ = ["check_arrays", "check_shapes", "forms_of", "graphs_from"]

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]
_MOST = 2**31  # rows, items, kinds and nodes have 32-bit numbers


class Sizes:
    """The sizes that forms name, each as long as one array, which has been checked to be there.

    "largest graph" and "largest bag" count nodes and subgraphs; "nodes and pairs" is what the conventional model has per layer,
    and the unedited graphs. These three are of pointers and sizes that have been checked.
    """

    def __init__(self, header: Header, shapes: Shapes) -> None:
        def first(*names: str) -> int:
            return next((shapes[name][0] for name in names if name in shapes), 0)

        attributes = first("sources.edge_attr", "graphs.edge_attr")
        marks = first("sources.edge_marks", "edits.edge_marks")
        self.known = {
            "graphs": first("sources.node_ptr", "graphs.node_ptr") - 1,
            "nodes": header.nodes,
            "subgraphs": first("sources.sub_size") if "sources.sub_size" in shapes else first("edits.node_ptr") - 1,
            "start kinds": first("sources.start_feature"),
            "x": first("sources.x", "graphs.x"),
            "marks": first("sources.marks", "edits.marks"),
            "edge marks": marks,
            "edge attributes": attributes,
            "kinds of edges": max(attributes, 1),
            "edge kinds": max(attributes, 1) * marks,  # as expand.edge_tables has them
            "edges": first("graphs.src"),
            "node edits": first("edits.node"),
            "edge edits": first("edits.edge"),
            "roots": next((shapes[n][1] for n in ("sources.root", "edits.root") if n in shapes), 0),
        }
        for name in shapes:
            table, _, part = name.rpartition(".")
            if part == "own":
                self.known |= {f"rows of {table}": first(name), f"items of {table}": first(f"{table}.a")}
            elif part == "count_row":
                self.known[f"counts of {table}"] = first(name)

    def add(self, arrays: Arrays) -> None:
        """Those that are known once pointers are checked."""
        nodes, subs = (np.diff(_one(arrays, name)) for name in ("node_ptr", "sub_ptr"))
        self.known |= {"largest graph": int(nodes.max(initial=0)), "largest bag": int(subs.max(initial=0))}
        self.known["nodes and pairs"] = int(nodes.sum() + (subs * nodes).sum())

    def __call__(self, name: int | str) -> int:
        if isinstance(name, int):
            return name
        sign, more = -1 if name.startswith("-") else 1, name.endswith(" + 1")
        return sign * self.known[name.removeprefix("-").removesuffix(" + 1")] + more


def _has_rows(names: Mapping[str, object]) -> bool:
    """Whether a file holds rows; otherwise graphs and edits alone."""
    return any(name.startswith(("sources.", "step")) for name in names)


def _one(arrays: Arrays, name: str) -> np.ndarray:
    """``node_ptr`` or ``sub_ptr``, wherever a file has it."""
    if _has_rows(arrays):
        return arrays[f"sources.{name}"]
    return arrays["graphs.node_ptr" if name == "node_ptr" else "edits.sub_ptr"]


def forms_of(program: Program, names: Mapping[str, object]) -> dict[str, Form]:
    """By name, of all arrays that a file with these, and this program, may have."""
    forms = source_forms(program) | row_forms(program) if _has_rows(names) else {}
    if not _has_rows(names) or program.unshared is not None:
        forms |= graph_forms()
    return own_forms(list(names)) | forms


def check_shapes(header: Header) -> None:
    """Which arrays there are, their types and their lengths: before they are unpacked."""
    there = header.arrays
    if _has_rows(there) and header.key["kind"] != "distinct":
        raise CorruptFileError(f"Expected an array 'graphs.node_ptr' in a file of kind {header.key['kind']}, got none")
    forms = forms_of(header.program, there)
    for name in there:
        if name not in forms:
            raise CorruptFileError(f"Expected no array '{name}' for these steps, got one:\n{header.program}")
    shapes = {name: tuple(how["shape"]) for name, how in there.items()}
    for name, form in forms.items():
        if name not in there:
            if not form.optional:
                raise CorruptFileError(f"Expected an array '{name}', got none")
            continue
        if there[name]["dtype"] not in form.dtypes:
            raise CorruptFileError(f"Expected '{name}' of type {' or '.join(form.dtypes)}, got {there[name]['dtype']}")
        axes, more = len(shapes[name]), form.shape[-1]
        if axes != len(form.shape) and not (more == ANY and axes == 1) and not (more == MORE and axes >= 1):
            raise CorruptFileError(f"Expected '{name}' with {len(form.shape)} axes, got {list(shapes[name])}")
    sizes = Sizes(header, shapes)
    for name, form in forms.items():
        for axis, (size, length) in enumerate(zip(form.shape, shapes.get(name, ()))):
            if size not in (None, ANY, MORE) and length != sizes(size):
                raise CorruptFileError(f"Expected '{name}' to have {sizes(size)} ({size}) on axis {axis}, got {length}")
    for size, count in sizes.known.items():
        if count >= _MOST:
            raise CorruptFileError(f"Expected fewer than 2^31 {size}, got {count}")
    for size in ("graphs", "marks", "edge marks"):
        if sizes(size) < 1:  # what is not marked has a mark, too: the first one
            raise CorruptFileError(f"Expected some {size}, got {sizes(size)}")
    for name in ("sources.root", "edits.root"):
        if name in shapes and shapes[name][1] not in (1, 2):
            raise CorruptFileError(f"Expected one root or two in '{name}', got {shapes[name][1]}")


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
    place = "sources" if _has_rows(arrays) else "graphs"
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
    if _has_rows(arrays):
        _check_counts(header.program, arrays)
    if "graphs.node_ptr" in arrays:
        _check_graphs(arrays)
    if _has_rows(arrays) and "graphs.node_ptr" in arrays:
        _check_both(arrays)
