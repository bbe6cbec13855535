"""Compiled datasets whose last steps share no rows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from static_models import assert_same, graphs_for, model_for, results

import enfa
from enfa.batch import PackedLoader
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.static.fill import Filler
from enfa.batch.static.padding import Bucket, Form, pad_plan
from enfa.batch.static.writing import lean_plan
from enfa.plan.derived.prepare import prepare
from enfa.plan.rows import ending
from enfa.testing import random_graph, random_graphs

NAMES = ["Between", "Union", "Context", "Knowledge", "gine", "gin, concat", "mpnn", "gine, dropout"]
CHOSEN = [3, 1, 7, 10]


def _compiled(name: str, count: int = 12, unshared: Any = 2, **options: Any) -> tuple[Any, list[Any], Any]:
    graphs, model = graphs_for(name, 1, 12, 12), model_for(name)
    options = {"progress": False, "unshared": unshared} | options
    return enfa.compile(graphs[:count], enfa.NodeMarking(), model, **options), graphs, model


def _expected(name: str, graphs: list[Any], model: Any) -> Any:
    full = enfa.compile(graphs, enfa.NodeMarking(), model, kind="full", progress=False)  # places of graphs count in masks
    return results(model, full[CHOSEN])


@pytest.mark.parametrize("name", NAMES)
def test_slices_files_and_added_graphs(name: str, tmp_path: Path) -> None:
    compiled, graphs, model = _compiled(name)
    assert compiled.program.unshared == 2 and len(compiled.rows) == 2
    expected = _expected(name, graphs, model)
    assert_same(results(model, compiled[CHOSEN]), expected)
    compiled.save(tmp_path / "some.enfa")
    assert_same(results(model, enfa.load_compiled(tmp_path / "some.enfa")[CHOSEN]), expected)
    fewer, _, _ = _compiled(name, 6)
    fewer.extend(graphs[6:12])
    assert_same(results(model, fewer[CHOSEN]), expected)
    again, _, _ = _compiled(name, cache=tmp_path)
    cached, _, _ = _compiled(name, cache=tmp_path)
    assert len(list(tmp_path.glob("*.enfa"))) == 2 and again.key == cached.key
    assert_same(results(model, cached[CHOSEN]), expected)


@pytest.mark.parametrize("name", NAMES)
def test_padded_batches_and_blocks(name: str) -> None:
    compiled, graphs, model = _compiled(name)
    expected, needs = _expected(name, graphs, model), compiled.program.needs
    lean = lean_plan(compiled, np.array(CHOSEN), needs)
    sizes = {n: s + 3 for n, s in zip(Form(lean).names, Form(lean).sizes(lean.tensors()).tolist())}
    assert_same(results(model, pad_plan(lean, sizes)), expected)
    for batch in PackedLoader(compiled, model, 4, graphs=CHOSEN):
        assert batch.bucket is not None
        assert_same(results(model, batch.plan), expected)
    form = Form(lean)
    bucket = Bucket(form, form.sizes(lean.tensors()) + 3)
    filled, copied = (bucket.arrays(np.full(bucket.nbytes, value, np.uint8)) for value in (7, 9))
    filler = Filler(form, needs)
    assert filler.fill(compiled.plan(CHOSEN), [filler.block(bucket, filled)]) == 0
    tensors = form.tensors(prepare(compiled.plan(CHOSEN), needs))
    assert tensors is not None
    bucket.write(tensors, copied)
    assert all(one.tobytes() == other.tobytes() for one, other in zip(filled, copied))


class Weighed(torch.nn.Module):
    """Its last step of messages has the table of those before, and reads nothing of it but how many there are."""

    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)
        self.conv = enfa.nn.convs.make_conv("gin", 4, 4, 0, None)

    def forward(self, bag: Any) -> Any:
        h: Any = self.embed(torch.cat([bag.x, bag.mark], 1))
        for _ in range(2):
            h = self.norm(bag.propagate(self.conv, h, along="subgraphs")).relu()
        return bag.pool(bag.pool(h * bag.degrees_of(h, "subgraphs")))


def test_a_batch_that_a_block_has_no_room_for_is_not_written_into_it() -> None:
    """As many nodes and more edges, of which only maps know that several steps share."""
    graphs = [random_graph(9, degree, seed=seed) for seed, degree in enumerate((1.0, 1.0, 5.0, 5.0))]
    compiled = enfa.compile(graphs, enfa.NodeMarking(), Weighed().double(), kind="full", progress=False)
    needs = compiled.program.needs
    lean = lean_plan(compiled, np.array([0, 1]), needs)
    form, filler = Form(lean), Filler(Form(lean), needs)
    bucket = Bucket(form, form.sizes(lean.tensors()) + 3)
    beyond = np.full(20 * bucket.nbytes, 7, np.uint8)  # room for what is written outside, if it is
    block = filler.block(bucket, bucket.arrays(beyond[: bucket.nbytes]))
    assert filler.fill(compiled.plan([0, 1]), [block]) == 0
    assert filler.fill(compiled.plan([2, 3]), [block]) is None


def test_rows_of_each_graph() -> None:
    compiled, _, _ = _compiled("Between")
    steps = [n for n, step in enumerate(compiled.program.steps) if step.op == "propagate"]
    for g, rows in enumerate(compiled.rows_per_graph().tolist()):
        plan = compiled[[g]]
        assert rows == sum(plan.num_rows(n) for n in steps), g
    assert compiled.cost().rows == [compiled[:].num_rows(n) for n in steps]


def test_parts_of_bags(tmp_path: Path) -> None:
    """A draw of a compiled bag is the same draw of a full one."""
    draw = enfa.Subsample(enfa.NodeMarking(), count=3)
    compiled, graphs, model = _compiled("gine")
    full = enfa.compile(graphs[:12], enfa.NodeMarking(), model, kind="full", progress=False)
    assert_same(results(model, compiled.plan(CHOSEN, draw)), results(model, full.plan(CHOSEN, draw)))


def test_what_is_refused(tmp_path: Path) -> None:
    for wrong in (0, 99, "all", True):
        with pytest.raises(ValueError, match="Expected unshared to be a step from 1 to"):
            _compiled("gin", unshared=wrong)
    compiled, _, _ = _compiled("gin")
    with pytest.raises(ValueError, match="none shared from step 2 on"):
        compiled.first_layers(1)
    compiled.rows[1].place = compiled.rows[1].place[:-1]
    compiled.save(tmp_path / "short.enfa")
    with pytest.raises(CorruptFileError, match=r"row of every pair in 'step1\.place'"):
        enfa.load_compiled(tmp_path / "short.enfa")


def test_where_sharing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random features of many values are shared by nothing after a layer between subgraphs; equal graphs share everything."""
    model = model_for("Between")
    monkeypatch.setattr(ending, "FEWEST", 1)
    monkeypatch.setattr(ending, "SMALLEST", 100)
    dense = random_graphs(8, 20, seed=2)
    for graph in dense:
        graph.x = torch.randn_like(graph.x)
    for graphs, ends, largest in ((dense, True, 2000), (dense[:1] * 8, False, 2000), (dense, False, 99)):
        monkeypatch.setattr(ending, "LARGEST", largest)
        compiled = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False)
        at = compiled.program.unshared
        assert (at is not None) == ends
        shared = enfa.compile(graphs, enfa.NodeMarking(), model, progress=False, unshared=None)
        assert shared.program.unshared is None
        again = enfa.compile(graphs, enfa.NodeMarking(), compiled.program, progress=False, unshared=None)
        assert again.program == shared.program
        assert (f"none shared from step {at} on" in repr(compiled)) == ends
        more = sum(compiled[:].cost().rows) / sum(shared[:].cost().rows)
        assert more <= 1 + 2 * ending.MORE


def test_a_file_is_found_before_it_is_known_where_sharing_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[int] = []

    def end(*of: Any) -> int:
        found.append(2)
        return 2

    monkeypatch.setattr("enfa.batch.compile.end_of_sharing", end)
    first, graphs, model = _compiled("Between", unshared="auto", cache=tmp_path)
    again, _, _ = _compiled("Between", unshared="auto", cache=tmp_path)
    assert found == [2] and again.key == first.key and again.program.unshared == 2
    assert_same(results(model, again[CHOSEN]), _expected("Between", graphs, model))
    (file,) = tmp_path.glob("*.enfa")
    _compiled("Between", 5, unshared="auto", cache=tmp_path)  # other graphs
    assert len(found) == 2
    none, _, _ = _compiled("Between", unshared=None, cache=tmp_path)  # asked for: a file of its own
    assert none.program.unshared is None and len(list(tmp_path.glob("*.enfa"))) == 3
    with pytest.raises(ValueError, match="program"):
        _compiled("Between", unshared=None, cache=file)
