"""Files whose digest is right and whose numbers are not: refused, or wrong, but nothing outside of their arrays is read."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import crafted
import numpy as np
import pytest

import enfa
from enfa.batch import CorruptFileError
from enfa.batch.forms import graph_forms, row_forms, source_forms

Parts = tuple[dict[str, Any], dict[str, np.ndarray]]
# numbers that nothing is looked up by: any will do
FREE = {
    "start.b": "degrees", "layer0.context.own": "encoder", "layer1.context.own": "encoder",
    "y": "", "sources.marks": "", "sources.edge_marks": "", "edits.marks": "", "edits.edge_marks": "",
}  # fmt: skip


@pytest.fixture(scope="module", params=crafted.CASES)
def case(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def parts(case: str, tmp_path_factory: pytest.TempPathFactory) -> Parts:
    path = tmp_path_factory.mktemp("file") / "x.enfa"
    crafted.compiled_case(case).save(path)
    return crafted.parts_of(path)


@pytest.fixture
def refused(tmp_path: Path) -> Callable[..., None]:
    def check(name: str | None, *content: Any, **more: Any) -> None:
        path = crafted.write(tmp_path / "x.enfa", *content, **more)
        named = ".*" if name is None else f".*{re.escape(name)}"
        with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: " + named):
            enfa.load_compiled(path)

    return check


def test_unchanged_parts_load(parts: Parts, tmp_path: Path) -> None:
    enfa.load_compiled(crafted.write(tmp_path / "x.enfa", *parts))


def test_forms_say_which_numbers_are_free(case: str) -> None:
    spec = crafted.model_of(case).spec
    degrees = spec.degrees and spec.context_encoder
    for name, form in (source_forms(spec) | row_forms(spec) | graph_forms(spec)).items():
        free = form.below is None and form.rises_to is None and form.adds_to is None
        exempt = {"degrees": spec.degrees, "encoder": degrees, "": True}.get(FREE.get(name, "no"), False)
        assert free == exempt or name.endswith((".x", ".edge_attr")), name  # a model asks for their limits


def test_numbers_out_of_range_are_refused(case: str, parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    spec = crafted.model_of(case).spec
    forms = source_forms(spec) | row_forms(spec) | graph_forms(spec)
    tried = 0
    for name, array in arrays.items():
        form = forms[name]
        if not array.size or array.dtype.kind == "f":
            continue
        largest = np.iinfo(array.dtype).max if array.dtype != bool else 2
        negative = -1 if form.least == 0 else -(2**31)
        bounded = form.below is not None or form.rises_to is not None or form.adds_to is not None
        values = [largest, 2**31 - 1] * (bounded or name in ("sources.x", "sources.edge_attr"))
        values += [negative, -(2**31)] * (form.least is not None)
        for value in values:
            changed = array.copy().view(np.uint8 if array.dtype == bool else array.dtype)
            changed.reshape(-1)[tried % array.size] = value if array.dtype != bool else 2
            refused(f"'{name}'", header, {**arrays, name: changed.view(array.dtype)})
            tried += 1
    assert tried > 60  # of each of fourteen files


def test_the_next_number_after_the_last_is_refused(case: str, parts: Parts, refused: Callable[..., None]) -> None:
    """Whatever points into a table: one too far."""
    header, arrays = parts
    tables = {name.removesuffix(".own"): len(array) for name, array in arrays.items() if name.endswith(".own")}
    if not tables:
        pytest.skip("a file without rows")
    context = crafted.model_of(case).spec.context
    if context is None:
        before, last = "layer0.rows", "layer1.rows"
    else:
        before, last = "layer0.mix", "layer1.mix"
    into = {"sub_delta": "deltas", "layer0.rows.own": "start", "layer0.rows.a": "start", "node_sum": "nodes"}
    into |= {"layer1.rows.own": before, "layer1.rows.a": before, "layer1.mix.own": "layer1.rows"}
    into |= {"layer1.context.a": before if context == "input" else "layer1.rows"}
    into |= {"layer1.encoder.own": "layer1.context", "layer1.encoder.a": "layer1.context"}
    into |= {"layer1.mix.a": "layer1.encoder" if "layer1.encoder" in tables else "layer1.context"}
    into["layer1.node_context"] = into["layer1.mix.a"]
    into |= dict.fromkeys(("base_row", "deltas.a", "sub_root", "nodes.a"), last)
    for name, table in into.items():
        if name in arrays and arrays[name].size:
            changed = arrays[name].copy()
            changed.reshape(-1)[-1] = tables[table]
            least = -1 if name == "sub_root" else 0
            refused(f"'{name}' from {least} to {tables[table] - 1}", header, {**arrays, name: changed})


def test_every_array_must_be_there_in_its_type_and_length(parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    optional = ("sources.keeps", "sources.edge_attr", "y", "edits.keeps", "graphs.edge_attr", "edits.root")
    features = (".x", ".edge_attr", "marks")  # of which one more may be there, that nobody names
    for name, array in arrays.items():
        if name not in optional:
            without = {n: a for n, a in arrays.items() if n != name}
            refused(None if name == "graphs.node_ptr" else f"'{name}'", header, without)
        if name != "y":
            other = array.astype({"<i8": "<i4", "<i4": "<i8", "<f4": "<f8", "|b1": "|u1"}[array.dtype.str])
            refused(f"'{name}' of type", header, {**arrays, name: other})
            turned = array[None] if array.ndim == 1 else array.reshape(-1)
            refused(f"'{name}' with", header, {**arrays, name: turned})
        if len(array) and not (name == "sources.edge_attr" and "graphs.edge_attr" in arrays):
            refused(None, header, {**arrays, name: array[:-1]})
            if not name.endswith(features):
                refused(None, header, {**arrays, name: np.concatenate([array, array[:1]])})
    refused("'more'", header, {**arrays, "more": np.zeros(3)})
    refused("'layer2.rows.own'", header, {**arrays, "layer2.rows.own": np.zeros(3, np.int32)})


def test_pointers_that_fall(parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    for name, array in arrays.items():
        if name.endswith("_ptr"):
            refused(f"'{name}' to rise", header, {**arrays, name: array + 1})
            if array[-1]:
                refused(f"'{name}' to rise", header, {**arrays, name: array[::-1].copy()})
                between = array.copy()
                between[1:-1] = array[-1] + 1
                refused(f"'{name}' to rise", header, {**arrays, name: between})


def test_lengths_that_add_up_by_wrapping_round(parts: Parts, refused: Callable[..., None]) -> None:
    header, arrays = parts
    for name, array in arrays.items():
        if name.endswith(".length") and len(array) > 4:
            changed = array.copy()
            changed[:4] += 2**62
            refused(f"'{name}'", header, {**arrays, name: changed})


def test_graphs_and_edits_must_fit_together(refused: Callable[..., None], tmp_path: Path) -> None:
    crafted.compiled_case("ego, kept nodes").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")

    def changed(name: str, at: int, value: int) -> dict[str, np.ndarray]:
        array = arrays[name].copy()
        array.reshape(-1)[at] = value
        return {**arrays, name: array}

    last = len(arrays["graphs.node_kind"]) - 1
    refused("'graphs.dst' to rise", header, changed("graphs.dst", 0, last))
    refused("'graphs.src' within the graph", header, changed("graphs.src", 0, last))
    refused("'graphs.order' within the edges", header, changed("graphs.order", 0, len(arrays["graphs.order"]) - 1))
    refused("edits: graph 0 has", header, changed("edits.node", 0, last))
    at = int(arrays["edits.node_ptr"][np.argmax(np.diff(arrays["edits.node_ptr"]))])
    refused("twice", header, changed("edits.node", at, int(arrays["edits.node"][at + 1])))
    refused("as its root", header, changed("edits.root", 0, last))
    other = arrays["sources.sub_ptr"].copy()
    other[1] -= 1
    refused("'sources.sub_ptr' and 'edits.sub_ptr'", header, {**arrays, "sources.sub_ptr": other})


def test_roots_have_rows(refused: Callable[..., None], tmp_path: Path) -> None:
    crafted.compiled_case("root, pruned").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")
    rooted = int(np.flatnonzero(arrays["sources.root"][:, 0] >= 0)[0])
    for name, message in (("sub_root", "'sub_root' to have a row"), ("sources.root", "'sources.root' to name all")):
        array = arrays[name].copy()
        array[rooted, 1] = -1
        refused(message, header, {**arrays, name: array})
    root = arrays["sources.root"].copy()
    root[rooted] = np.diff(arrays["sources.node_ptr"]).max() - 1
    refused("'sources.root' within the nodes", header, {**arrays, "sources.root": root})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda h: h["key"].update(kind="fast"), "header.key.kind"),
        (lambda h: h["key"].update(policy=3), "header.key.policy"),
        (lambda h: h["key"].update(params=[]), "header.key.params"),
        (lambda h: h["key"].update(params={"distances": "far"}), "header.key.params"),
        (lambda h: h["key"].pop("digest"), "header.key.digest"),
        (lambda h: h["key"].pop("spec"), "header.key.spec"),
        (lambda h: h["key"]["spec"].update(num_layers=True), r"spec.num_layers"),
        (lambda h: h["key"]["spec"].update(num_layers=10**12), r"spec.num_layers"),
        (lambda h: h["key"]["spec"].update(num_layers=3), r"layer2.rows.own"),
        (lambda h: h["key"]["spec"].update(num_layers=1), "affected"),
        (lambda h: h["key"]["spec"].update(degrees="no"), "spec.degrees"),
        (lambda h: h["key"]["spec"].update(output="all"), "output"),
        (lambda h: h["key"]["spec"].update(speed=3), "speed"),
        (lambda h: h["key"]["spec"].update(context="input"), "layer0.context"),
        (lambda h: h["key"]["spec"].update(output="node"), "nodes.own"),
        (lambda h: h["key"]["spec"].update(edge_attr=True, output="root"), "sources.root"),
        (lambda h: h.update(limits=3), "header.limits"),
        (lambda h: h.update(limits=[[1], [-1]]), "header.limits"),
        (lambda h: h.update(limits=[[0, 0], []]), "header.limits"),
        (lambda h: h.update(affected=["1"]), "header.affected"),
        (lambda h: h.update(affected=[1, 2, 3]), "header.affected"),
        (lambda h: h.update(key=[]), "header.key"),
    ],
)
def test_headers(change: Callable, message: str, refused: Callable[..., None], tmp_path: Path) -> None:
    crafted.compiled_case("ds").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")
    change(header)
    refused(message, header, arrays)


@pytest.mark.parametrize(
    "text", [b"", b"[", b"\xff", b"3", b"null", b"{}", b'{"key": 3}', b"[" * 10**5, b'{"key": ' + b"9" * 5000]
)
def test_headers_that_are_none(text: bytes, refused: Callable[..., None]) -> None:
    refused("header", {}, {}, text=text)


@pytest.mark.parametrize(
    "how",
    [
        {"dtype": "|O"}, {"dtype": "<c16"}, {"dtype": ">i4"}, {"dtype": 3}, {"shape": 3}, {"shape": [-1]}, {"shape": [2.5]},
        {"shape": [1, 1, 1]}, {"shape": [True]}, {"shape": [2**61]}, {"shape": [2**61, 8]}, {"shape": [10**10]},
        {"shape": [10**12, 0]}, {"width": 3}, {"width": -1}, {"width": "4"}, {"delta": 1}, {"delta": None}, {"shape": [7]},
    ],
)  # fmt: skip
def test_packing(how: dict[str, Any], refused: Callable[..., None], tmp_path: Path) -> None:
    crafted.compiled_case("ds").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")
    for name in ("sub_delta", "y"):
        refused(f"'{name}'", header, arrays, how={name: {**header["arrays"][name], **how}})
        refused(f"'{name}'", header, arrays, how={name: 3})


def test_more_than_there_is_memory_for(tmp_path: Path) -> None:
    """A few kilobytes of zeros that stand for terabytes."""
    crafted.compiled_case("ds").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")
    noise = np.random.default_rng(0).integers(0, 2**62, 10**6)  # so that the file is long enough to hold them
    how = {"y": {"dtype": "<i8", "shape": [16, 10**10], "delta": False, "width": 1}}
    crafted.write(tmp_path / "b.enfa", header, {**arrays, "y": noise}, how)
    with pytest.raises(ValueError, match=r"b\.enfa: Expected arrays that fit into \d+ GiB of memory, got 2\d{3} GiB"):
        enfa.load_compiled(tmp_path / "b.enfa")


def test_frames_that_say_they_hold_more(refused: Callable[..., None], tmp_path: Path) -> None:
    """A frame's own header, which is what is allocated for."""
    import zstandard

    crafted.compiled_case("ds").save(tmp_path / "a.enfa")
    header, arrays = crafted.parts_of(tmp_path / "a.enfa")
    frame = bytes.fromhex("28b52ffde0") + (2**50).to_bytes(8, "little") + b"\0" * 9  # eight bytes for the size
    assert zstandard.frame_content_size(frame) == 2**50
    path = crafted.write(tmp_path / "x.enfa", header, arrays)
    crafted.write_packed(path, {"sub_delta": frame})
    with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: 'sub_delta': Expected \d+ bytes, got 1125899906842624"):
        enfa.load_compiled(path)
    for name, data in {"sub_delta": b"no frame", "y": b"", "base_row": frame[:3]}.items():
        crafted.write_packed(crafted.write(path, header, arrays), {name: data})
        with pytest.raises(CorruptFileError, match=f"'{name}'"):
            enfa.load_compiled(path)


def test_images_that_are_none(tmp_path: Path) -> None:
    for image in (b"", b"{}", b"\xff" * 100, (2**60).to_bytes(8, "little") + b"{}"):
        crafted.write_image(tmp_path / "x.enfa", image)
        with pytest.raises(CorruptFileError, match=r"x\.enfa: damaged: no arrays"):
            enfa.load_compiled(tmp_path / "x.enfa")


def test_single_changes_never_crash() -> None:
    """Files with one number changed are loaded, sliced and run in a process of their own."""
    source = Path(enfa.__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, crafted.__file__, "0", "30"]
    found = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert found.returncode == 0, found.stdout + found.stderr
    numbers = [line.rpartition(": ")[2].split() for line in found.stdout.splitlines()]
    assert len(numbers) == len(crafted.CASES)
    assert all(int(refused) >= 10 and int(used) >= 3 for refused, used in numbers), found.stdout
