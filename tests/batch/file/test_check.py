"""Files whose digest is right and whose numbers are not: refused, or wrong, but nothing outside of their arrays is read."""

from __future__ import annotations

import copy
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafted_programs
import numpy as np
import pytest
import stored
import torch
from program_cases import CASES, Case, Chain, graphs_of

import enfa
from enfa.batch import CorruptFileError
from enfa.batch.file.shapes import forms_of

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
# Cases whose arrays are put out of range one by one: each takes some seconds where there are many steps. Those of the other
# cases are of the same forms.
EACH = [
    "about nodes", "ds, not counted", "full, kept nodes", "roots, not counted", "dss", "ds, edges", "rooted", "ds, degrees",
    "ds, shared within graphs",
]  # fmt: skip
FREE = ("y", "marks", "edge_marks", ".x", ".edge_attr")  # whatever the type can hold: nothing is looked up by it


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> Case:
    return CASES[request.param]


@pytest.fixture(scope="module")
def parts(case: Case, tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return _parts(case, tmp_path_factory.mktemp("file") / "x.enfa")


def _parts(case: Case, path: Path) -> Parts:
    case.compiled(graphs_of(case)).save(path)
    return stored.parts_of(path)


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., None]:
    def check(name: str | None, *content: Any, **more: Any) -> None:
        path = stored.write(tmp_path / "x.enfa", *content, **more)
        named = ".*" if name is None else f".*{re.escape(name)}"
        with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: " + named):
            enfa.load_compiled(path)

    return check


def test_unchanged_parts_load(parts: Parts, tmp_path: Path) -> None:
    enfa.load_compiled(stored.write(tmp_path / "x.enfa", *parts))


def test_forms_say_which_numbers_are_free(case: Case, parts: Parts) -> None:
    program = case.program(graphs_of(case))
    for name, form in forms_of(program, parts[1]).items():
        free = form.below is None and form.rises_to is None and form.adds_to is None
        degrees = name == "step0.keys.b" and program.steps[0].degrees
        assert free == (name.endswith(FREE) or name.startswith("graph_attr.") or degrees), name


@pytest.mark.parametrize("case", EACH, indirect=True)
def test_numbers_out_of_range_are_refused(case: Case, parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    forms, tried = forms_of(case.program(graphs_of(case)), arrays), 0
    for name, array in arrays.items():
        form = forms[name]
        if not array.size or array.dtype.kind == "f":
            continue
        largest = np.iinfo(array.dtype).max if array.dtype != bool else 2
        negative = -1 if form.least == 0 else -(2**31)
        bounded = form.below is not None or form.rises_to is not None or form.adds_to is not None
        for value in [largest if tried % 2 else 2**31 - 1] * bounded + [negative] * (form.least is not None):
            changed = array.copy().view(np.uint8 if array.dtype == bool else array.dtype)
            changed.reshape(-1)[tried % array.size] = value if array.dtype != bool else 2
            refused(f"'{name}'", header, {**arrays, name: changed.view(array.dtype)})
            tried += 1
    assert tried > 20


def test_the_next_number_after_the_last_is_refused(case: Case, parts: Parts, refused: Callable[..., None]) -> None:
    """Whatever points into a table: one too far."""
    header, arrays = parts
    if case.anew:
        pytest.skip("a file without rows")
    steps, tried = case.program(graphs_of(case)).steps, 0
    for number, step in enumerate(steps):
        name = f"step{number}"
        rows = [len(arrays[f"step{r}.keys.own"]) for r in step.reads]
        lists = f"{name}.lists.own" in arrays
        into = {f"{name}.place": len(arrays[f"{name}.keys.own"]), f"{name}.count_row": len(arrays[f"{name}.keys.own"])}
        if step.op in ("propagate", "join", "spread", "diagonal"):
            into[f"{name}.keys.own"] = rows[0]
        if step.reads:
            into[f"{name}.lists.a" if lists else f"{name}.keys.a"] = rows[-1]
        if lists:
            into[f"{name}.keys.a"] = len(arrays[f"{name}.lists.own"])
        for array, size in into.items():
            if array in arrays and arrays[array].size:
                changed = arrays[array].copy()
                changed[-1] = size
                refused(f"'{array}' from 0 to {size - 1}", header, {**arrays, array: changed})
                tried += 1
    assert tried >= 1.5 * len(steps)


@pytest.mark.parametrize("case", EACH, indirect=True)
def test_every_array_must_be_there_in_its_type_and_length(case: Case, parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    forms = forms_of(case.program(graphs_of(case)), arrays)
    features = (".x", ".edge_attr", "marks")  # of which one more may be there, that nothing names
    for name, array in arrays.items():
        if name.startswith("graph_attr."):
            refused(f"'{name}' to have 16 (graphs)", header, {**arrays, name: array[:-1]})
            continue
        counts = "count" in name and (f"{name.split('.')[0]}.place" in arrays or not case.counted)  # known without them
        optional = forms[name].optional or counts
        if not optional:
            without = {n: a for n, a in arrays.items() if n != name}
            refused(None if name == "graphs.node_ptr" else f"'{name}'", header, without)
        if name != "y":
            turned = array[None] if array.ndim == 1 else array.reshape(-1)
            refused(f"'{name}' with", header, {**arrays, name: turned})
            if not name.endswith(features):
                other = array.astype({"<i8": "<i4", "<i4": "<i8", "|b1": "|u1"}[array.dtype.str])
                refused(f"'{name}' of type", header, {**arrays, name: other})
        if len(array) and not name.endswith(features):
            refused(None, header, {**arrays, name: array[:-1]})
            refused(None, header, {**arrays, name: np.concatenate([array, array[:1]])})
    refused("'more'", header, {**arrays, "more": np.zeros(3)})


@pytest.mark.parametrize(
    ("name", "end", "what"),
    [
        ("rooted", ".count", "pairs of each graph"),
        ("nodes", ".count", "pairs of each graph"),
        ("ds", ".lists.b", "nodes of each subgraph"),
        ("sun", ".lists.b", "nodes of each subgraph"),
        ("ds, not counted", ".lists.b", "nodes of each subgraph"),
    ],
)
def test_counts_add_up(name: str, end: str, what: str, refused: Callable[..., None], tmp_path: Path) -> None:
    """What the rows of a graph, or a subgraph, stand for are its pairs, all of them."""
    header, arrays = _parts(CASES[name], tmp_path / "a.enfa")
    there = [name for name in arrays if name.endswith(end)]
    assert there
    for array in there:
        for at in (0, -1):
            changed = arrays[array].copy()
            changed[at] += 1 if changed[at] < 0 else -1 if changed[at] > 1 else 2  # within its range, and not 0
            refused(f"'{array}' to add up to the {what}", header, {**arrays, array: changed})
    fewer = arrays["sources.sub_size"].copy()
    fewer[np.argmax(fewer)] -= 1
    refused(f"to add up to the {what}", header, {**arrays, "sources.sub_size": fewer})


def test_rows_that_are_read_and_not_counted(tmp_path: Path) -> None:
    """All numbers in range, and yet a kernel would read copies that are not there."""
    header, arrays = _parts(CASES["rooted"], tmp_path / "a.enfa")
    rows = np.full_like(arrays["step9.keys.a"], len(arrays["step8.keys.own"]) - 1)  # of the last graphs
    compiled = enfa.load_compiled(stored.write(tmp_path / "x.enfa", header, {**arrays, "step9.keys.a": rows}))
    with pytest.raises(ValueError, match="Expected copies of all rows that are read of step 8"):
        compiled[[0]]


def test_rows_that_a_pool_takes_away_more_often_than_it_adds(tmp_path: Path) -> None:
    """Every subgraph pools as many pairs as it has, and yet some rows of a batch would stand for none of them, or for fewer."""
    header, arrays = _parts(CASES["ds"], tmp_path / "a.enfa")
    counts, begin = arrays["step4.lists.b"].copy(), 0
    for length in arrays["step4.lists.length"]:
        if length > 1:
            counts[begin : begin + 2] += 3, -3
        begin += length
    compiled = enfa.load_compiled(stored.write(tmp_path / "x.enfa", header, {**arrays, "step4.lists.b": counts}))
    with pytest.raises(ValueError, match="Expected copies of all rows that are read of step 3"):
        compiled[:]


def test_columns_of_categories_reach_what_is_said(refused: Callable[..., None], tmp_path: Path) -> None:
    graphs = graphs_of(CASES["ds"])
    for graph in graphs:
        graph.x_cat = torch.arange(graph.num_nodes)[:, None]
    for kind, place in (("distinct", "sources"), ("full", "graphs")):
        enfa.compile(graphs, enfa.NodeMarking(), Chain(1), kind=kind, progress=False).save(tmp_path / "a.enfa")
        header, arrays = stored.parts_of(tmp_path / "a.enfa")
        assert arrays[f"{place}.categories"].tolist() == [6]
        for changed in ([5], [6] * 5):
            refused(f"columns of '{place}.x'", header, {**arrays, f"{place}.categories": np.array(changed)})


def test_graphs_and_edits_fit_together(refused: Callable[..., None], tmp_path: Path) -> None:
    header, arrays = _parts(CASES["full, kept nodes"], tmp_path / "a.enfa")

    def changed(name: str, at: int, value: int) -> dict[str, np.ndarray]:
        array = arrays[name].copy()
        array.reshape(-1)[at] = value
        return {**arrays, name: array}

    last = len(arrays["graphs.node_kind"]) - 1
    refused("'graphs.dst' to rise", header, changed("graphs.dst", 0, last))
    refused("'graphs.src' within the graph", header, changed("graphs.src", 0, last))
    refused("'graphs.order' within the edges", header, changed("graphs.order", 0, len(arrays["graphs.order"]) - 1))
    refused("edits: graph 1 has", header, changed("edits.node", 0, last))
    at = int(arrays["edits.node_ptr"][np.argmax(np.diff(arrays["edits.node_ptr"]))])
    refused("twice", header, changed("edits.node", at, int(arrays["edits.node"][at + 1])))
    refused("as its root", header, changed("edits.root", 0, last))
    refused("'edits.root', got 3", header, {**arrays, "edits.root": np.repeat(arrays["edits.root"], 3, axis=1)})


def test_roots_are_nodes_of_their_graphs(refused: Callable[..., None], tmp_path: Path) -> None:
    header, arrays = _parts(CASES["rooted"], tmp_path / "a.enfa")
    root = arrays["sources.root"].copy()
    root[0] = np.diff(arrays["sources.node_ptr"]).max() - 1
    refused("'sources.root' within the nodes", header, {**arrays, "sources.root": root})
    refused("'sources.root', got 3", header, {**arrays, "sources.root": np.repeat(arrays["sources.root"], 3, axis=1)})


def _step(number: int, **changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda h: h["key"]["program"]["steps"][number].update(changes)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["key"].update(kind="fast"), "header.key.kind"),
        (lambda h: h["key"].update(policy=3), "header.key.policy"),
        (lambda h: h["key"].update(params=[]), "header.key.params"),
        (lambda h: h["key"].update(params={"far": 1}), "header.key.params"),
        (lambda h: h["key"].update(dtype="int8"), "header.key.dtype"),
        (lambda h: h["key"].pop("digest"), "header.key.digest"),
        (lambda h: h["key"].pop("program"), "header.key.program"),
        (lambda h: h["key"]["program"].pop("steps"), "a program of steps"),
        (lambda h: h["key"]["program"].update(speed=3), "a program of steps"),
        (lambda h: h["key"]["program"].update(steps=[]), "program.steps"),
        (lambda h: h["key"]["program"].update(steps=h["key"]["program"]["steps"] * 1000), "1 to 4096 steps"),
        (lambda h: h["key"]["program"].update(share="all"), "program.share"),
        (lambda h: h["key"]["program"].update(loops=1), "program.loops"),
        (lambda h: h["key"]["program"].update(counted="no"), "program.counted"),
        (lambda h: h["key"]["program"]["steps"].append(3), "program.steps[9]"),
        (lambda h: (h["key"]["program"]["steps"].pop(), h.update(needs=[])), "no array 'step8."),
        (_step(0, op="propagate"), "the start of pairs"),
        (_step(1, op="start", reads=[]), "a step that there is"),
        (_step(1, op="fold"), "a step that there is"),
        (_step(1, kind="edges"), "a step that there is"),
        (_step(1, kind="nodes"), "a step that there is"),
        (_step(1, reads=[1]), "program.steps[1]'.reads to be earlier steps"),
        (_step(1, reads=[-1]), "reads to be earlier steps"),
        (_step(1, reads=[0, 0]), "a step that there is"),
        (_step(1, reads=0), "reads to be list"),
        (_step(1, along="edges"), ".along"),
        (_step(3, along="subgraphs"), ".along"),
        (_step(2, edges=True), ".edges"),
        (_step(1, edges=1), ".edges to be bool"),
        (_step(1, degrees=True), ".degrees"),
        (_step(1, speed=3), "program.steps[1]"),
        (lambda h: h["key"]["program"]["steps"][6].update(reads=[5, 9]), "reads to be earlier steps"),
        (lambda h: h.update(needs=None), "header.needs"),
        (lambda h: h.update(needs=[[9, "sum"]]), "header.needs"),
        (lambda h: h.update(needs=[[1, 2]]), "header.needs"),
        (lambda h: h.update(needs=[[7, "lowered 7"]]), "header.needs"),
        (lambda h: h.update(needs=[[7, "lowered x1"]]), "header.needs"),
        (lambda h: h.update(nodes=-1), "header.nodes"),
        (lambda h: h.update(nodes=10**12), "header.nodes"),
        (lambda h: h.update(key=[]), "header.key"),
    ],
)
def test_headers(change: Callable, message: str, refused: Callable[..., None], dss: Parts) -> None:
    header, arrays = copy.deepcopy(dss[0]), dss[1]
    change(header)
    refused(message, header, arrays)


@pytest.fixture(scope="module")
def dss(tmp_path_factory: pytest.TempPathFactory) -> Parts:
    return _parts(CASES["dss"], tmp_path_factory.mktemp("file") / "x.enfa")


@pytest.mark.parametrize(
    "text", [b"", b"[", b"\xff", b"3", b"null", b"{}", b'{"key": 3}', b"[" * 10**5, b'{"key": ' + b"9" * 5000]
)
def test_headers_that_are_none(text: bytes, refused: Callable[..., None]) -> None:
    refused("header", {}, {}, text=text)


@pytest.mark.parametrize(
    "how",
    [
        {"dtype": "|O"}, {"dtype": "<c16"}, {"dtype": ">i4"}, {"dtype": 3}, {"shape": 3}, {"shape": [-1]}, {"shape": [2.5]},
        {"shape": [1, 1, 1]}, {"shape": [1] * 9}, {"shape": [True]}, {"shape": [2**61]}, {"shape": [2**61, 8]},
        {"shape": [10**10]}, {"shape": [10**12, 0]}, {"width": 5}, {"width": -1}, {"width": "4"}, {"delta": 1},
        {"delta": None}, {"shape": [7]},
    ],
)  # fmt: skip
def test_packing(how: dict[str, Any], refused: Callable[..., None], dss: Parts) -> None:
    header, arrays = dss
    for name in ("step7.place", "y"):
        refused(f"'{name}'", header, arrays, how={name: {**header["arrays"][name], **how}})
        refused(f"'{name}'", header, arrays, how={name: 3})


def test_more_than_there_is_memory_for(dss: Parts, tmp_path: Path) -> None:
    """A few kilobytes of zeros that stand for terabytes."""
    noise = np.random.default_rng(0).integers(0, 2**62, 10**6)  # so that the file is long enough to hold them
    how = {"y": {"dtype": "<i8", "shape": [16, 10**10], "delta": False, "width": 1}}
    stored.write(tmp_path / "b.enfa", dss[0], {**dss[1], "y": noise}, how)
    with pytest.raises(ValueError, match=r"b\.enfa: Expected arrays that fit into \d+ GiB of memory, got 2\d{3} GiB"):
        enfa.load_compiled(tmp_path / "b.enfa")


def test_frames_that_say_they_hold_more(dss: Parts, tmp_path: Path) -> None:
    """A frame's own header, which is what is allocated for."""
    import zstandard

    frame = bytes.fromhex("28b52ffde0") + (2**50).to_bytes(8, "little") + b"\0" * 9  # eight bytes for the size
    assert zstandard.frame_content_size(frame) == 2**50
    path, name = stored.write(tmp_path / "x.enfa", *dss), "step7.place"
    length = len(frame).to_bytes(4, "little")  # in front of it, as of every block
    stored.write_packed(path, {name: length + frame})
    with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: 'step7.place': Expected \d+ bytes, got 1125899906842624"):
        enfa.load_compiled(path)
    others = {
        b"": "'step7.place' packed into 0 bytes",
        b"\4\0\0\0none": "'step7.place': Expected a zstd frame",
        **dict.fromkeys((frame[:3], frame, length + frame[:-1], length + frame + b"x"), "'step7.place': Expected 1 blocks"),
    }
    for data, what in others.items():
        stored.write_packed(stored.write(path, *dss), {name: data})
        with pytest.raises(CorruptFileError, match=what):
            enfa.load_compiled(path)


def _image(said: Any, data: bytes = b"0123456789") -> bytes:
    text = json.dumps(said).encode()
    return len(text).to_bytes(8, "little") + text + data


def _said(*ends: Any, dtype: str = "U8", shape: Any = None) -> dict[str, Any]:
    return {"dtype": dtype, "shape": [ends[1] - ends[0]] if shape is None else shape, "data_offsets": ends}


@pytest.mark.parametrize(
    "image",
    [
        b"", b"{}", b"\xff" * 100, (2**60).to_bytes(8, "little") + b"{}", _image([]), _image({"header": 3}), _image({}),
        _image({"header": {}}), _image({"header": _said(0, 11)}), _image({"header": _said(0, 9)}),
        _image({"header": _said(1, 10)}), _image({"header": _said(0, 10, dtype="I8")}),
        _image({"header": _said(0, 10, shape=[5, 2])}),
        _image({"a": _said(0, 5), "header": _said(4, 10)}), _image({"a": _said(0, 12), "header": _said(12, 10)}),
        _image({"header": _said(0, 10.0)}), _image({"header": _said(0, 5, 10)}), b"\xa0\x86\1\0\0\0\0\0" + b"[" * 10**5,
    ],
)  # fmt: skip
def test_images_that_are_none(image: bytes, tmp_path: Path) -> None:
    stored.write_image(tmp_path / "x.enfa", image)
    with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: no arrays"):
        enfa.load_compiled(tmp_path / "x.enfa")


@pytest.mark.long
def test_single_changes_never_crash() -> None:
    """Files with one number changed are loaded, sliced and run in a process of their own."""
    source, support = Path(enfa.__file__).parents[1], Path(crafted_programs.__file__).parent
    environment = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{support}", "OMP_NUM_THREADS": "1"}
    cases = ["ds, edges", "roots, not counted", "dss", "sun", "full, kept nodes"]  # the script takes any
    command = [sys.executable, crafted_programs.__file__, "0", "10", *cases]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert found.returncode == 0, found.stdout + found.stderr
    numbers = [line.rpartition(": ")[2].split() for line in found.stdout.splitlines()]
    assert len(numbers) == len(cases) and all(int(refused) >= 3 for refused, _ in numbers), found.stdout
    assert sum(int(used) for _, used in numbers) >= 10, found.stdout
