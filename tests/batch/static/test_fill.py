"""A plan of steps written straight into a block is the prepared plan copied there, byte for byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from static_models import EVERY_MODEL, graphs_for, model_for

import enfa
from enfa.batch.static.fill import Filler
from enfa.batch.static.padding import Bucket, Form
from enfa.batch.static.writing import lean_plan
from enfa.plan.derived.prepare import prepare

BATCHES = [np.arange(b, b + 4) for b in (0, 4, 8)]


def _compiled(name: str) -> Any:
    return enfa.compile(graphs_for(name, 1, 12, 20)[:12], enfa.NodeMarking(), model_for(name), progress=False)


def _bucket(compiled: Any) -> Bucket:
    """Large enough for all batches."""
    plans = [lean_plan(compiled, g, compiled.program.needs) for g in BATCHES]
    form = Form(plans[0])
    return Bucket(form, np.max([form.sizes(plan.tensors()) for plan in plans], 0) + 3)


def _arrays(bucket: Bucket, value: int) -> list[np.ndarray]:
    return bucket.arrays(np.full(bucket.nbytes, value, np.uint8))


@pytest.mark.parametrize("name", EVERY_MODEL)
def test_same_bytes(name: str) -> None:
    compiled = _compiled(name)
    needs, bucket = compiled.program.needs, _bucket(compiled)
    filler = Filler(bucket.form, needs)
    longest = 0
    for g in BATCHES:
        filled, copied = _arrays(bucket, 7), _arrays(bucket, 9)
        assert filler.fill(compiled.plan(g), [filler.block(bucket, filled)]) == 0
        tensors = bucket.form.tensors(prepare(compiled.plan(g), needs))
        assert tensors is not None
        bucket.write(tensors, copied)
        for k, (one, other) in enumerate(zip(filled, copied)):
            assert one.tobytes() == other.tobytes(), k
        longest = max(longest, max(t.shape[1] for t in tensors if t.ndim == 2 and len(t) == 3))
    assert longest  # some lists were in pieces


@pytest.mark.parametrize("name", ["gin", "gine"])
def test_nearly_all_bytes_are_written_straight(name: str) -> None:
    compiled = _compiled(name)
    bucket = _bucket(compiled)
    filler = Filler(bucket.form, compiled.program.needs)
    arrays = _arrays(bucket, 0)
    assert sum(arrays[k].nbytes for k in filler._rest) < 0.4 * sum(array.nbytes for array in arrays)


def test_a_block_without_room_for_the_pieces_of_long_lists_is_passed_over() -> None:
    compiled = _compiled("gin")
    large = _bucket(compiled)
    sizes = np.where([name.endswith(" pieces") for name in large.form.names], 0, large.sizes)
    small = Bucket(large.form, sizes)
    filler, plan = Filler(large.form, compiled.program.needs), compiled.plan(BATCHES[0])
    tiny = Bucket(large.form, np.where(large.form.rows, 1, large.sizes))
    blocks = [filler.block(bucket, _arrays(bucket, 7)) for bucket in (tiny, small, large)]
    assert filler.fill(plan, blocks) == 2
    assert filler.fill(plan, blocks[:2]) is None
