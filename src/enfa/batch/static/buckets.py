"""Which sizes to pad to: few enough to capture a step for each, close enough to waste little."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from enfa.batch.static.padding import Bucket, Form
from enfa.plan.derived.order import CHUNK
from enfa.plan.table import Plan

__all__ = ["Buckets", "choose_sizes"]

MOST = 6
GAIN = 0.02  # another bucket must save this part of all rows
SMALL = 0.02
MARGIN = 1.05  # of the largest bucket above the largest batch seen
SPARE = 1.35  # one more bucket, so large: a batch that none holds runs eagerly, which costs as much as ten others


def choose_sizes(samples: np.ndarray, cost: np.ndarray, rare: np.ndarray, most: int = MOST) -> list[np.ndarray]:
    """Sizes of at most ``most`` buckets, each holding the one before.

    ``samples`` int64 [batches, names]; ``cost`` [names]: how often each size counts in what a batch costs; ``rare``: those
    that count rare things and cost nothing. Batches are put in order of their cost, and cut into groups so that padding
    is least.
    """
    samples, weight = samples.copy(), np.asarray(cost, np.float64)
    largest = samples.max(0)
    # as counts of rare things go, another batch may well have four deviations more
    samples[:, rare] = np.where(largest > 0, largest + 4 * np.sqrt(largest) + 16, 0)[rare]
    for group in (weight > 0, weight == 0):
        # small ones cost nothing, and must not decide where a batch goes: as large as ever, in every bucket
        small = group & (samples.mean(0) < SMALL * samples[:, group].mean(0).sum())
        samples[:, small] = np.ceil(MARGIN * samples[:, small].max(0))
    order = np.argsort(samples @ weight, kind="stable")
    holds = np.maximum.accumulate(samples[order], 0)  # what the first i + 1 fit into
    price = holds @ weight
    count = len(price)
    # best[i]: the least cost of the first i batches, with so many buckets as rounds were made
    best = np.arange(1, count + 1) * price
    cuts: list[np.ndarray] = [np.zeros(count, np.int64)]
    real = float((samples @ weight).sum()) or 1.0
    for _ in range(most - 1):
        # batches before b as they were best, b to i in one bucket
        pairs = np.concatenate([[0.0], best[:-1]])[None, :] + price[:, None] * (
            np.arange(count)[:, None] - np.arange(count)[None, :] + 1
        )
        pairs[np.arange(count)[:, None] < np.arange(count)[None, :]] = np.inf
        new = pairs.min(1)
        if best[-1] - new[-1] < GAIN * real:
            break
        cuts.append(pairs.argmin(1))
        best = new
    found, end = [], count - 1
    for cut in reversed(cuts):
        found.append(holds[end])
        end = int(cut[end]) - 1
        if end < 0:
            break
    found[0] = np.ceil(found[0] * MARGIN).astype(np.int64)
    return found[::-1]


@dataclass
class Waste:
    """What padding costs, over the batches sampled."""

    buckets: int
    rows: float  # padded rows per real row

    def __str__(self) -> str:
        plural = "s" if self.buckets > 1 else ""
        return f"{self.buckets} bucket{plural} and a spare one, {100 * self.rows - 100:.0f}% more rows by padding"


class Buckets:
    """The sizes that the batches of one loader are padded to, from a sample of them, by number of graphs."""

    def __init__(self, samples: Iterable[Plan]) -> None:
        """``samples``: prepared, lean plans of whole batches; also of the last, smaller one of an epoch."""
        self.all: list[Bucket] = []
        self._forms: dict[int, Form] = {}
        self._numbers: dict[int, list[int]] = {}
        self.waste: dict[int, Waste] = {}
        sizes: dict[int, list[np.ndarray]] = {}
        for plan in samples:
            if plan.num_graphs not in self._forms and plan.countable:
                self._forms[plan.num_graphs] = Form(plan)
            form = self._forms.get(plan.num_graphs)
            tensors = None if form is None else form.tensors(plan)
            if form is not None and tensors is not None:
                sizes.setdefault(plan.num_graphs, []).append(form.sizes(tensors))
        for graphs, found in sizes.items():
            # one step of an epoch is not worth many captures
            self._add(self._forms[graphs], np.stack(found), MOST if graphs == max(sizes) else 1)

    def _add(self, form: Form, samples: np.ndarray, most: int) -> None:
        chosen = choose_sizes(samples, form.rows, self._pieces(form), most)
        made = [Bucket(form, sizes) for sizes in [*chosen, self._spare(form, chosen[-1])]]
        self._numbers[form.num_graphs] = list(range(len(self.all), len(self.all) + len(made)))
        self.all += made
        padded = [made[i].sizes @ form.rows for i in (self._smallest(made, s) for s in samples) if i is not None]
        real = max(float((samples @ form.rows).sum()), 1.0)
        self.waste[form.num_graphs] = Waste(len(chosen), float(np.sum(padded)) / real)

    @staticmethod
    def _spare(form: Form, largest: np.ndarray) -> np.ndarray:
        """Also with room for the pieces of long lists where no list has been long so far."""
        sizes = np.ceil(largest * SPARE).astype(np.int64)
        sizes[Buckets._pieces(form) & (largest == 0)] = sizes.max(initial=0) // CHUNK
        return sizes

    @staticmethod
    def _pieces(form: Form) -> np.ndarray:
        return np.array([name.endswith((" pieces", " long")) for name in form.names])

    @staticmethod
    def _smallest(buckets: Sequence[Bucket], sizes: np.ndarray) -> int | None:
        return next((i for i, bucket in enumerate(buckets) if (sizes <= bucket.sizes).all()), None)

    def of(self, plan: Plan) -> tuple[Form | None, list[int]]:
        """The form of plans with as many graphs, and the numbers of its buckets, smallest first."""
        return self._forms.get(plan.num_graphs), self._numbers.get(plan.num_graphs, [])

    @property
    def nbytes(self) -> int:
        """Of the largest block."""
        return max((bucket.nbytes for bucket in self.all), default=0)

    def __len__(self) -> int:
        return len(self.all)

    def __str__(self) -> str:
        return "; ".join(f"batches of {graphs}: {waste}" for graphs, waste in self.waste.items()) or "no bucket"
