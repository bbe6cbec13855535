"""What each array of a stored file must look like, and what its numbers point into.

Kernels check no bounds, so a number that points outside of its table would read, or write, whatever lies there. A digest tells
damage; it does not tell what was written on purpose. :mod:`enfa.batch.check_file` therefore holds every array that
was read against these forms. A new array needs a line here, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from enfa.plan.spec import Spec

__all__ = ["Form", "graph_forms", "row_forms", "source_forms"]

INT, SHORT, BOOL = ("<i8",), ("<i4",), ("|b1",)
MARKS = ("<f4",)
FEATURES = ("<f2", "<f4", "<f8", "<i8")
LABELS = (*FEATURES, "<i4", "<i2", "|i1", "|u1", "|b1")
ANY = "..."
NONE = -1  # the number that stands for no row, node or graph


@dataclass(frozen=True)
class Form:
    """The type, the shape and the range of an array's numbers.

    ``shape`` names sizes; None is any number, ANY no further axis or one. Numbers go from ``least`` to below the size
    ``below``; :class:`enfa.batch.check_file.Sizes` explains the names. None: whatever the type can hold, because nothing is
    looked up by it.
    """

    dtypes: tuple[str, ...]
    shape: tuple[str | None, ...]
    least: int | str | None = 0
    below: str | int | None = None
    rises_to: str | None = None  # pointers: from 0 to that size
    adds_to: str | None = None  # lengths: that size is their sum
    optional: bool = False


def _table(
    name: str,
    own: str | int | None,
    a: str,
    b: str | int | None,
    least_b: int | str = 0,
    one: bool = False,
) -> dict[str, Form]:
    """A table of keys: what ``own``, ``a`` and ``b`` point into. ``one``: every key has exactly one item."""
    rows, items = f"rows of {name}", f"items of {name}"
    return {
        f"{name}.own": Form(SHORT, (rows,), below=own),
        f"{name}.length": Form(INT, (rows,), int(one), 2 if one else None, adds_to=items),
        f"{name}.a": Form(SHORT, (items,), below=a),
        f"{name}.b": Form(SHORT, (items,), least_b, b),
    }


def source_forms(spec: Spec) -> dict[str, Form]:
    """What every file has, whatever its kind: :class:`enfa.plan.slice.Sources` and the labels."""
    by_graph = spec.share == "graph"
    found = {
        "sources.node_ptr": Form(INT, ("graphs + 1",), rises_to="nodes"),
        "sources.sub_ptr": Form(INT, ("graphs + 1",), rises_to="subgraphs"),
        "sources.sub_size": Form(INT, ("subgraphs",), below="largest graph + 1"),
        "sources.start_feature": Form(INT, ("start kinds",), below="x"),
        "sources.start_graph": Form(INT, ("start kinds",), 0 if by_graph else NONE, "graphs" if by_graph else 0),
        "sources.x": Form(FEATURES, ("x", None)),
        "sources.marks": Form(MARKS, ("marks", None), None),
        "sources.edge_marks": Form(MARKS, ("edge marks", None), None),
        "sources.keeps": Form(BOOL, ("subgraphs",), below=2, optional=True),
        "y": Form(LABELS, ("graphs", ANY), None, optional=True),
    }
    if spec.edge_attr:
        found["sources.edge_attr"] = Form(FEATURES, ("edge attributes", None), optional=True)
    if spec.output == "root":
        found["sources.root"] = Form(INT, ("subgraphs", "roots"), NONE, "largest graph")
    return found


def row_forms(spec: Spec) -> dict[str, Form]:
    """:class:`enfa.plan.distinct.DistinctRows`."""
    found = _table("start", own="start kinds", a="marks", b=None if spec.degrees else 1, one=True)
    before = "rows of start"
    for i in range(spec.num_layers):
        layer = f"layer{i}"
        found |= _table(f"{layer}.rows", own=before, a=before, b="edge kinds")
        rows = f"rows of {layer}.rows"
        if spec.context is not None:
            own = None if spec.degrees and spec.context_encoder else 1
            read = before if spec.context == "input" else rows
            found |= _table(f"{layer}.context", own=own, a=read, b="largest bag + 1", least_b=1)
            seen = f"rows of {layer}.context"
            if spec.context_encoder:
                found |= _table(f"{layer}.encoder", own=seen, a=seen, b="edge kinds")
                seen = f"rows of {layer}.encoder"
            found |= _table(f"{layer}.mix", own=rows, a=seen, b=1, one=True)
            found[f"{layer}.node_context"] = Form(SHORT, ("nodes",), below=seen)
        before = rows if spec.context is None else f"rows of {layer}.mix"
    found |= _table("deltas", own=1, a=before, b="largest graph + 1", least_b="-largest graph")
    found |= {
        "base_ptr": Form(INT, ("graphs + 1",), rises_to="base rows"),
        "base_row": Form(SHORT, ("base rows",), below=before),
        "sub_delta": Form(SHORT, ("subgraphs",), below="rows of deltas"),
        "graph_rows": Form(INT, ("layers", "graphs"), below="nodes and pairs + 1"),
    }
    if spec.output == "root":
        found["sub_root"] = Form(SHORT, ("subgraphs", "roots"), NONE, before)
    if spec.output == "node":
        found |= _table("nodes", own=1, a=before, b="largest bag + 1", least_b=1)
        found["node_sum"] = Form(SHORT, ("nodes",), below="rows of nodes")
    return found


def graph_forms(spec: Spec) -> dict[str, Form]:
    """:class:`enfa.graphs.GraphSet` and :class:`enfa.edits.Edits`, of which every batch is planned anew."""
    found = {
        "graphs.node_ptr": Form(INT, ("graphs + 1",), rises_to="nodes"),
        "graphs.src": Form(INT, ("edges",), below="nodes"),
        "graphs.dst": Form(INT, ("edges",), below="nodes"),
        "graphs.order": Form(INT, ("edges",), below="edges"),
        "graphs.node_kind": Form(INT, ("nodes",), below="graphs' x"),
        "graphs.x": Form(FEATURES, ("graphs' x", None)),
        "graphs.edge_kind": Form(INT, ("edges",), below="graphs' edge attributes" if spec.edge_attr else 1),
        "edits.sub_ptr": Form(INT, ("graphs + 1",), rises_to="subgraphs"),
        "edits.node_ptr": Form(INT, ("subgraphs + 1",), rises_to="node edits"),
        "edits.node": Form(INT, ("node edits",), below="nodes"),
        "edits.node_value": Form(INT, ("node edits",), NONE, "edits' marks"),
        "edits.edge_ptr": Form(INT, ("subgraphs + 1",), rises_to="edge edits"),
        "edits.edge": Form(INT, ("edge edits",), below="edges"),
        "edits.edge_value": Form(INT, ("edge edits",), NONE, "edits' edge marks"),
        "edits.marks": Form(MARKS, ("edits' marks", None), None),
        "edits.edge_marks": Form(MARKS, ("edits' edge marks", None), None),
        "edits.keeps": Form(BOOL, ("subgraphs",), below=2, optional=True),
        "edits.root": Form(INT, ("subgraphs", "edits' roots"), NONE, "nodes", optional=spec.output != "root"),
    }
    if spec.edge_attr:
        found["graphs.edge_attr"] = Form(FEATURES, ("graphs' edge attributes", None), optional=True)
    return found
