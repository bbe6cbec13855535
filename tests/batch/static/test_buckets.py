"""Few buckets, little waste."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

import enfa
from enfa.batch.static.buckets import MARGIN, MOST, Buckets, choose_sizes
from enfa.nn.bag import Bag
from enfa.plan.derived.prepare import lean, prepare
from enfa.testing import random_graph

ROWS = np.array([True, True, False])
RARE = np.array([False, False, False])


def _samples(spread: float, count: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    scale = np.exp(spread * rng.standard_normal((count, 1))) * np.exp(0.02 * rng.standard_normal((count, 3)))
    return np.ceil(scale * np.array([1000, 5000, 20000])).astype(np.int64)


def test_every_sample_fits_and_buckets_are_nested() -> None:
    for spread in (0.01, 0.3):
        samples = _samples(spread)
        found = choose_sizes(samples, ROWS, RARE)
        assert 1 <= len(found) <= MOST
        assert (samples <= found[-1]).all()
        assert all((a <= b).all() for a, b in pairwise(found))


def test_a_narrow_distribution_needs_fewer_than_a_wide_one() -> None:
    narrow, wide = (choose_sizes(_samples(spread), ROWS, RARE) for spread in (0.005, 0.5))
    assert len(narrow) <= 2 < len(wide)


def test_the_cuts_are_the_best_ones() -> None:
    """Two sorts of batches: a bucket for each, the first without any waste."""
    samples = np.array([[100, 10, 5]] * 10 + [[1000, 100, 50]] * 10)
    first, second = choose_sizes(samples, ROWS, RARE)
    assert first[0] == 100 and second[0] == np.ceil(1000 * MARGIN)


def test_a_small_table_does_not_decide() -> None:
    samples = _samples(0.3)
    samples[:, 0] = np.arange(len(samples)) % 7 + 1  # a handful of rows, as large in small batches as in large ones
    found = choose_sizes(samples, ROWS, RARE)
    assert len(found) > 2 and all(sizes[0] >= 7 for sizes in found)


def test_rare_things_have_room_to_be_more() -> None:
    """Rows with very many readers, say: none in most batches, and in some more than in any that was sampled."""
    samples = _samples(0.3)
    samples[:, 2] = np.random.default_rng(0).poisson(9, len(samples))
    others = np.random.default_rng(1).poisson(9, 10_000)
    without, found = (choose_sizes(samples, ROWS, rare) for rare in (RARE, np.array([False, False, True])))
    assert others.max() > without[-1][2] and all(sizes[2] >= others.max() for sizes in found)
    assert [s[0] for s in without] == [s[0] for s in found]
    samples[:, 2] = 0  # what there is none of costs no launch
    assert choose_sizes(samples, ROWS, np.array([False, False, True]))[-1][2] == 0


def test_a_spare_bucket_holds_what_is_somewhat_larger() -> None:
    model = enfa.DSGNN(2, 6, 2, 2)

    def plan(nodes: int) -> Bag:
        graph = random_graph(nodes, channels=2, seed=nodes)
        bag = enfa.make_plan([graph], enfa.NodeMarking(), model)
        return lean(prepare(bag, bag.program.needs), bag.program.needs)

    few = [plan(nodes) for nodes in range(30, 40)]
    buckets = Buckets(few)

    def smallest(plan: Bag) -> int | None:
        form, numbers = buckets.of(plan)
        assert form is not None
        tensors = form.tensors(plan)
        assert tensors is not None
        return next((n for n in numbers if (form.sizes(tensors) <= buckets.all[n].sizes).all()), None)

    found = [smallest(p) for p in few]
    assert None not in found and max(n for n in found if n is not None) < len(buckets) - 1
    assert smallest(plan(44)) == len(buckets) - 1 and smallest(plan(400)) is None
