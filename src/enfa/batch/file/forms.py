"""What each array of a stored file must look like, and what its numbers point into.

Kernels check no bounds, so a number that points outside of its table would read, or write, whatever lies there. A digest tells
damage; it does not tell what was written on purpose. :mod:`enfa.batch.file.check` therefore holds every array that was read
against these forms, which follow from the steps of the program. A new array needs a line here, and nothing else.
"""

from dataclasses import dataclass

from enfa.plan.step import Program, Step

__all__ = ["Form", "graph_forms", "own_forms", "row_forms", "source_forms"]

INT, SHORT, BOOL = ("<i8",), ("<i4",), ("|b1",)
MARKS = ("<f4", "<f8")
FEATURES = ("<f2", "<f4", "<f8", "<i8")
LABELS = (*FEATURES, "<i4", "<i2", "|i1", "|u1", "|b1")
ANY, MORE = "...", "... ..."
MOST_AXES = 8
NONE = -1  # the number that stands for no row, node or graph


@dataclass(frozen=True)
class Form:
    """The type, the shape and the range of an array's numbers.

    ``shape`` names sizes; None is any number, ANY no further axis or one, MORE any number of them. Numbers go from ``least`` to
    below the size ``below``; :class:`enfa.batch.file.shapes.Sizes` explains the names. None: whatever the type can hold, as
    nothing is looked up by it.
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
    own: str | int,
    a: str,
    b: str | int | None = 1,
    least_b: int | str = 0,
    items: tuple[int, int | None] = (0, None),
) -> dict[str, Form]:
    """A table of keys: what ``own``, ``a`` and ``b`` point into. ``items``: how many a key has, at least and at most."""
    rows, all_items = f"rows of {name}", f"items of {name}"
    below = None if items[1] is None else items[1] + 1
    return {
        f"{name}.own": Form(SHORT, (rows,), below=own),
        f"{name}.length": Form(SHORT, (rows,), items[0], below, adds_to=all_items),
        f"{name}.a": Form(SHORT, (all_items,), below=a),
        f"{name}.b": Form(SHORT, (all_items,), least_b, b),
    }


def source_forms(program: Program) -> dict[str, Form]:
    """:class:`enfa.plan.slicing.slice.Sources`, of files with rows."""
    by_graph = program.share == "graph"
    return {
        "sources.node_ptr": Form(INT, ("graphs + 1",), rises_to="nodes"),
        "sources.sub_ptr": Form(INT, ("graphs + 1",), rises_to="subgraphs"),
        "sources.sub_size": Form(INT, ("subgraphs",), below="largest graph + 1"),
        "sources.start_feature": Form(INT, ("start kinds",), below="x"),
        "sources.start_graph": Form(INT, ("start kinds",), 0 if by_graph else NONE, "graphs" if by_graph else 0),
        "sources.x": Form(FEATURES, ("x", None)),
        "sources.categories": Form(INT, (None,), below=2**24),
        "sources.marks": Form(MARKS, ("marks", None), None),
        "sources.edge_attr": Form(FEATURES, ("edge attributes", None), optional=True),
        "sources.edge_marks": Form(MARKS, ("edge marks", None), None),
        "sources.root": Form(
            INT, ("subgraphs", "roots"), NONE, "largest graph", optional=all(step.op != "root" for step in program.steps)
        ),
    }


def own_forms(names: list[str]) -> dict[str, Form]:
    """Labels and attributes of graphs, which every file may have; the latter by any names."""
    found = {"y": Form(LABELS, ("graphs", ANY), None, optional=True)}
    return found | {name: Form(LABELS, ("graphs", MORE), None) for name in names if name.startswith("graph_attr.")}


def _keys_of(name: str, step: Step, read: list[str], of_pairs: bool) -> dict[str, Form]:
    """The keys of one step; ``read``: the rows of the steps that it reads."""
    keys = f"{name}.keys"
    if step.op == "start":
        return _table(keys, "start kinds", "marks", None if step.degrees else 1, items=(1, 1))
    if step.op == "propagate":
        return _table(keys, read[0], read[0], "edge kinds" if step.edges else 1)
    if step.op == "join":
        return _table(keys, read[0], read[1], items=(1, 1))
    if step.op in ("spread", "diagonal"):
        return _table(keys, read[0], read[0], items=(0, 0))
    if step.op == "across":
        return _table(keys, 1, read[0], "largest bag + 1", 1)
    if step.op == "pool" and of_pairs:  # each pool is that of its graph and a delta, or one list
        lists = f"{name}.lists"
        found = _table(keys, 1, f"rows of {lists}", items=(1, 2))
        return found | _table(lists, 1, read[0], "largest graph + 1", "-largest graph")
    return _table(keys, 1, read[0], 2, 1)


def row_forms(program: Program) -> dict[str, Form]:
    """:class:`enfa.plan.rows.distinct.StepRows` of every step."""
    found: dict[str, Form] = {}
    for number, step in enumerate(program.shared):
        name = f"step{number}"
        of_pairs = step.op == "pool" and program.steps[step.reads[0]].kind == "pairs"
        found |= _keys_of(name, step, [f"rows of step{r}.keys" for r in step.reads], of_pairs)
        rows = f"rows of {name}.keys"
        if step.kind != "pairs" or number in program.handed_on:
            found[f"{name}.place"] = Form(SHORT, (None if step.kind == "pairs" else step.kind,), below=rows)
        if program.counted_by.get(number, number) is None:
            counts = f"counts of {name}"
            found[f"{name}.count_ptr"] = Form(INT, ("graphs + 1",), rises_to=counts)
            found[f"{name}.count_row"] = Form(SHORT, (counts,), below=rows)
            found[f"{name}.count"] = Form(INT, (counts,), 1, "nodes and pairs + 1")
    return found


def graph_forms() -> dict[str, Form]:
    """:class:`enfa.graphs.GraphSet` and :class:`enfa.edits.Edits`, of which every batch is planned anew."""
    return {
        "graphs.node_ptr": Form(INT, ("graphs + 1",), rises_to="nodes"),
        "graphs.src": Form(INT, ("edges",), below="nodes"),
        "graphs.dst": Form(INT, ("edges",), below="nodes"),
        "graphs.order": Form(INT, ("edges",), below="edges"),
        "graphs.node_kind": Form(INT, ("nodes",), below="x"),
        "graphs.x": Form(FEATURES, ("x", None)),
        "graphs.categories": Form(INT, (None,), below=2**24),
        "graphs.edge_kind": Form(INT, ("edges",), below="kinds of edges"),
        "graphs.edge_attr": Form(FEATURES, ("edge attributes", None), optional=True),
        "edits.sub_ptr": Form(INT, ("graphs + 1",), rises_to="subgraphs"),
        "edits.node_ptr": Form(INT, ("subgraphs + 1",), rises_to="node edits"),
        "edits.node": Form(INT, ("node edits",), below="nodes"),
        "edits.node_value": Form(INT, ("node edits",), NONE, "marks"),
        "edits.edge_ptr": Form(INT, ("subgraphs + 1",), rises_to="edge edits"),
        "edits.edge": Form(INT, ("edge edits",), below="edges"),
        "edits.edge_value": Form(INT, ("edge edits",), NONE, "edge marks"),
        "edits.marks": Form(MARKS, ("marks", None), None),
        "edits.edge_marks": Form(MARKS, ("edge marks", None), None),
        "edits.keeps": Form(BOOL, ("subgraphs",), below=2, optional=True),
        "edits.root": Form(INT, ("subgraphs", "roots"), NONE, "nodes", optional=True),
    }
