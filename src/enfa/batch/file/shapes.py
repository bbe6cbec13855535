"""Which arrays a stored file has, their types and their lengths: looked at before they are unpacked."""

from collections.abc import Mapping

import numpy as np

from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.forms import ANY, MORE, Form, graph_forms, own_forms, row_forms, source_forms
from enfa.batch.file.header import Header
from enfa.plan.step import Program

__all__ = ["Arrays", "Sizes", "check_shapes", "forms_of", "has_rows"]

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


def has_rows(names: Mapping[str, object]) -> bool:
    """Whether a file holds rows; otherwise graphs and edits alone."""
    return any(name.startswith(("sources.", "step")) for name in names)


def _one(arrays: Arrays, name: str) -> np.ndarray:
    """``node_ptr`` or ``sub_ptr``, wherever a file has it."""
    if has_rows(arrays):
        return arrays[f"sources.{name}"]
    return arrays["graphs.node_ptr" if name == "node_ptr" else "edits.sub_ptr"]


def forms_of(program: Program, names: Mapping[str, object]) -> dict[str, Form]:
    """By name, of all arrays that a file with these, and this program, may have."""
    forms = source_forms(program) | row_forms(program) if has_rows(names) else {}
    if not has_rows(names) or program.unshared is not None:
        forms |= graph_forms()
    return own_forms(list(names)) | forms


def check_shapes(header: Header) -> None:
    """Refuse a file whose header says that an array is missing, or of another type or length than it must be."""
    there = header.arrays
    if has_rows(there) and header.key["kind"] != "distinct":
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
