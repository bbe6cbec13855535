"""Whether the arrays of a stored file fit together, so that no kernel reads outside of them. Cost: some passes over each.

The one exception is that of edits (files without rows), of which it is asked by sorting whether a subgraph edits a node twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from enfa.batch.forms import ANY, FEATURES, Form, graph_forms, row_forms, source_forms
from enfa.batch.header import CorruptFileError, Header
from enfa.edits import Edits
from enfa.edits.check import check_edits
from enfa.graphs import GraphSet
from enfa.plan.expand import largest_value
from enfa.plan.spec import Spec

__all__ = ["check_arrays", "check_shapes"]

Arrays = Mapping[str, np.ndarray]
Shapes = Mapping[str, tuple[int, ...]]
_MOST = 2**31  # rows, items, kinds and nodes have 32-bit numbers


class Sizes:
    """The sizes that forms name, each as long as one array, which has been checked to be there.

    "largest graph" and "largest bag" count nodes and subgraphs; "nodes and pairs" is what the conventional model has per layer,
    and the unedited graphs. These three are of pointers and sizes that have been checked.
    """

    def __init__(self, header: Header, shapes: Shapes) -> None:
        spec = header.spec

        def first(name: str) -> int:
            return shapes[name][0] if name in shapes else 0

        def kinds(attributes: str) -> int:
            return max(first(attributes), 1) if spec.edge_attr else 1

        self.known = {
            "layers": spec.num_layers,
            "graphs": first("sources.node_ptr") - 1,
            "nodes": header.nodes,
            "base rows": first("base_row"),
            "subgraphs": first("sources.sub_size"),
            "start kinds": first("sources.start_feature"),
            "x": first("sources.x"),
            "marks": first("sources.marks"),
            "edge marks": first("sources.edge_marks"),
            "edge attributes": first("sources.edge_attr"),
            # as expand.edge_tables has them
            "edge kinds": kinds("sources.edge_attr") * (first("sources.edge_marks") if spec.edge_attr else 1),
            "edges": first("graphs.src"),
            "graphs' x": first("graphs.x"),
            "graphs' edge attributes": kinds("graphs.edge_attr"),
            "node edits": first("edits.node"),
            "edge edits": first("edits.edge"),
            "edits' marks": first("edits.marks"),
            "edits' edge marks": first("edits.edge_marks"),
            "roots": shapes["sources.root"][1] if "sources.root" in shapes else 0,
            "edits' roots": shapes["edits.root"][1] if "edits.root" in shapes else 0,
        }
        for name in shapes:
            if name.endswith(".own"):
                table = name.removesuffix(".own")
                self.known |= {f"rows of {table}": first(name), f"items of {table}": first(f"{table}.a")}

    def add(self, arrays: Arrays) -> None:
        """Those that are known once pointers are checked."""
        nodes, subs = (np.diff(arrays[f"sources.{name}"]) for name in ("node_ptr", "sub_ptr"))
        self.known |= {"largest graph": int(nodes.max(initial=0)), "largest bag": int(subs.max(initial=0))}
        self.known["nodes and pairs"] = int(nodes.sum() + (subs * nodes).sum())

    def __call__(self, name: int | str) -> int:
        if isinstance(name, int):
            return name
        sign, more = -1 if name.startswith("-") else 1, name.endswith(" + 1")
        return sign * self.known[name.removeprefix("-").removesuffix(" + 1")] + more


def _has_rows(names: Mapping[str, object]) -> bool:
    """Whether a file holds rows; otherwise graphs and edits."""
    return "graphs.node_ptr" not in names


def _forms(spec: Spec, names: Mapping[str, object]) -> dict[str, Form]:
    return source_forms(spec) | (row_forms(spec) if _has_rows(names) else graph_forms(spec))


def check_shapes(header: Header) -> None:
    """Which arrays there are, their types and their lengths: before they are unpacked."""
    spec, there = header.spec, header.arrays
    rows = _has_rows(there)
    if rows and header.key["kind"] != "distinct":
        raise CorruptFileError(f"Expected an array 'graphs.node_ptr' in a file of kind {header.key['kind']}, got none")
    if rows and f"layer{spec.num_layers - 1}.rows.own" not in there:  # before anything is made for so many layers
        raise CorruptFileError(f"Expected an array 'layer{spec.num_layers - 1}.rows.own', got none")
    if len(header.affected) != spec.num_layers * rows:
        raise CorruptFileError(f"Expected {spec.num_layers * rows} numbers in 'header.affected', got {len(header.affected)}")
    forms = _forms(spec, there)
    for name in there:
        if name not in forms:
            raise CorruptFileError(f"Expected no array '{name}' for {spec}, got one")
    shapes = {name: tuple(how["shape"]) for name, how in there.items()}
    for name, form in forms.items():
        if name not in there:
            if not form.optional:
                raise CorruptFileError(f"Expected an array '{name}', got none")
            continue
        if there[name]["dtype"] not in form.dtypes:
            raise CorruptFileError(f"Expected '{name}' of type {' or '.join(form.dtypes)}, got {there[name]['dtype']}")
        if len(shapes[name]) not in {len(form.shape), len(form.shape) - (form.shape[-1] == ANY)}:
            raise CorruptFileError(f"Expected '{name}' with {len(form.shape)} axes, got {list(shapes[name])}")
    sizes = Sizes(header, shapes)
    for name, form in forms.items():
        for axis, (size, length) in enumerate(zip(form.shape, shapes.get(name, ()))):
            if size not in (None, ANY) and length != sizes(size):
                raise CorruptFileError(f"Expected '{name}' to have {sizes(size)} ({size}) on axis {axis}, got {length}")
    for size, count in sizes.known.items():
        if count >= _MOST:
            raise CorruptFileError(f"Expected fewer than 2^31 {size}, got {count}")
    for size in ("graphs", "marks", "edge marks", *(() if rows else ("edits' marks", "edits' edge marks"))):
        if sizes(size) < 1:  # what is not marked has a mark, too: the first one
            raise CorruptFileError(f"Expected some {size}, got {sizes(size)}")
    if spec.output == "root" and sizes("roots") not in (1, 2):
        raise CorruptFileError(f"Expected one root or two in 'sources.root', got {sizes('roots')}")


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


def _check_roots(arrays: Arrays, nodes: np.ndarray) -> None:
    """Within their graphs, of a subgraph all or none, and with a row each."""
    root = arrays["sources.root"]
    if (root >= nodes[:, None]).any():
        raise CorruptFileError("Expected 'sources.root' within the nodes of each graph, got others")
    if ((root < 0) != (root[:, :1] < 0)).any():
        raise CorruptFileError("Expected 'sources.root' to name all roots of a subgraph or none, got some")
    if "sub_root" in arrays and ((arrays["sub_root"] < 0) != (root < 0)).any():
        raise CorruptFileError("Expected 'sub_root' to have a row for every root and for no others, got one too many or few")


def _check_graphs(arrays: Arrays) -> None:
    """What the loops over graphs and edits take for granted, in files without rows."""
    for one, other in (("sources.node_ptr", "graphs.node_ptr"), ("sources.sub_ptr", "edits.sub_ptr")):
        if not np.array_equal(arrays[one], arrays[other]):
            raise CorruptFileError(f"Expected '{one}' and '{other}' to be the same, got two that differ")
    names = [f.name for f in fields(GraphSet) if f.name != "first"]
    graphs = GraphSet(**{name: arrays.get(f"graphs.{name}") for name in names})  # type: ignore[arg-type]
    edits = Edits(**{f.name: arrays.get(f"edits.{f.name}") for f in fields(Edits)})  # type: ignore[arg-type]
    if (graphs.dst[1:] < graphs.dst[:-1]).any():
        raise CorruptFileError("Expected 'graphs.dst' to rise, got other numbers")
    of_edge = graphs.graph[graphs.dst]
    if (graphs.graph[graphs.src] != of_edge).any():
        raise CorruptFileError("Expected 'graphs.src' within the graph that 'graphs.dst' is in, got an edge between two")
    if (graphs.order < graphs.edge_ptr[of_edge]).any() or (graphs.order >= graphs.edge_ptr[of_edge + 1]).any():
        raise CorruptFileError("Expected 'graphs.order' within the edges of each graph, got others")
    if not graphs.num_nodes and edits.root is not None and (edits.root >= 0).any():
        raise CorruptFileError("Expected no root in 'edits.root' where there are no nodes, got one")
    if edits.root is not None and edits.root.shape[1] not in (1, 2):
        raise CorruptFileError(f"Expected one root or two in 'edits.root', got {edits.root.shape[1]}")
    try:
        check_edits(graphs, edits, "edits")
    except ValueError as error:
        raise CorruptFileError(str(error)) from error


def check_arrays(header: Header, arrays: Arrays) -> None:
    """The numbers of arrays whose shapes have been checked."""
    forms = {name: form for name, form in _forms(header.spec, arrays).items() if name in arrays}
    sizes = Sizes(header, {name: array.shape for name, array in arrays.items()})
    pointers = [name for name, form in forms.items() if form.rises_to is not None]
    for name in pointers:
        _check_numbers(name, arrays[name], forms[name], sizes)
    sizes.add(arrays)
    for name, form in forms.items():
        if name not in pointers:
            _check_numbers(name, arrays[name], form, sizes)
    nodes = np.repeat(np.diff(arrays["sources.node_ptr"]), np.diff(arrays["sources.sub_ptr"]))
    if (arrays["sources.sub_size"] > nodes).any():
        raise CorruptFileError("Expected 'sources.sub_size' up to the nodes of each graph, got more")
    if "sources.root" in arrays:
        _check_roots(arrays, nodes)
    found = largest_value(arrays["sources.x"]), largest_value(arrays.get("sources.edge_attr"))
    if header.limits != found:
        raise CorruptFileError(
            f"Expected 'sources.x' and 'sources.edge_attr' to reach 'header.limits', {header.limits}, got {found}"
        )
    if not _has_rows(arrays):
        _check_graphs(arrays)
