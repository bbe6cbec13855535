"""Subsampling: per epoch a new draw of subgraphs from each bag."""

from __future__ import annotations

import numpy as np

from enfa.edits.edits import Edits, chosen_subgraphs
from enfa.edits.policies.chosen import Chosen
from enfa.edits.policy import Policy
from enfa.graphs import GraphSet
from enfa.graphs.numbers import real, whole

__all__ = ["Subsample"]


def _mixed(value: np.ndarray, salt: np.ndarray | int) -> np.ndarray:
    """Scrambled uint64 numbers (splitmix64); products wrap round."""
    with np.errstate(over="ignore"):
        step = np.asarray(salt).astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        value = value + step + np.uint64(0x632BE59BD9B4E019)
        value = (value ^ (value >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        value = (value ^ (value >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return value ^ (value >> np.uint64(31))


class Subsample(Chosen):
    """A part of another policy's bags: ESAN's stochastic sampling.

    Args:
        policy: whose bags to draw from.
        fraction: of every bag, rounded up. Or
        count: subgraphs of every bag; all of a bag that has no more.
        seed: a draw is a function of (seed, epoch, position of the graph) and nothing else.
        greedy: with scores, take the highest instead of drawing.

    The whole bags are compiled once; :meth:`draw` then chooses among compiled subgraphs, epoch by epoch. As a policy by
    itself it is the draw of epoch 0, for good: that is what models with a context need, whose rows depend on the bag.
    """

    def __init__(
        self,
        policy: Policy,
        fraction: float | None = None,
        count: int | None = None,
        seed: int = 0,
        greedy: bool = False,
    ) -> None:
        if not isinstance(policy, Policy):
            raise TypeError(f"Expected an enfa.Policy to draw from, got {policy!r}")
        if (fraction is None) == (count is None):
            raise ValueError(f"Expected either fraction or count, got fraction={fraction!r}, count={count!r}")
        self.policy = policy
        self.fraction = None if fraction is None else real("fraction", fraction, above=0, most=1)
        self.count = None if count is None else whole("count", count, 1)
        self.seed, self.greedy = whole("seed", seed, 0), greedy

    def edits(self, graphs: GraphSet) -> Edits:
        whole, every = self.policy.edits(graphs), np.arange(graphs.num_graphs)
        return whole.subset(graphs, every, self._drawn(whole.sub_ptr, every, graphs.first + every, 0))

    def draw(
        self,
        sub_ptr: np.ndarray,
        graphs: np.ndarray,
        epoch: int,
        score: np.ndarray | None = None,
        places: np.ndarray | None = None,
    ) -> np.ndarray:
        """int64: the subgraphs drawn from the bags of some graphs, as :class:`~enfa.plan.slicing.slice.Slicer` takes them.

        ``sub_ptr`` [G+1] tells the subgraphs of every graph of the dataset. Draws are uniform without repetition. With
        a ``score`` for each of its subgraphs, one after the other is drawn with probability proportional to exp(score)
        among those left; or, if ``greedy``, the highest are taken. ``places``: of the graphs in the whole dataset, by which
        draws differ, where ``sub_ptr`` is of a part of it. Cost: a sort of the bags.
        """
        graphs, epoch = np.asarray(graphs, np.int64), whole("epoch", epoch, 0)
        return self._drawn(sub_ptr, graphs, graphs if places is None else places, epoch, score)

    def _drawn(
        self, sub_ptr: np.ndarray, graphs: np.ndarray, places: np.ndarray, epoch: int, score: np.ndarray | None = None
    ) -> np.ndarray:
        """``places``: of the graphs in the dataset, which need not begin with them."""
        subs, sizes = chosen_subgraphs(sub_ptr, graphs, None)
        ptr = np.concatenate([[0], np.cumsum(sizes)])
        bag = np.repeat(np.arange(len(graphs)), sizes)
        first = _mixed(_mixed(np.zeros(1, np.uint64), self.seed), epoch)
        local = (np.arange(len(subs)) - ptr[bag]).astype(np.uint64)
        number = _mixed(_mixed(np.broadcast_to(first, len(subs)), places[bag]), local)
        key = ((number >> np.uint64(11)).astype(np.float64) + 0.5) / 2.0**53  # uniform, never 0 or 1
        if score is not None:
            score = np.asarray(score, np.float64)
            if score.shape != (int(sub_ptr[-1]),) or np.isnan(score).any() or (score == np.inf).any():
                raise ValueError(
                    f"Expected a score below inf for each of {int(sub_ptr[-1])} subgraphs, got {list(score.shape)}"
                )
            # the order of score + Gumbel noise is that of drawing one after the other
            order = np.lexsort((key, -score[subs] if self.greedy else np.log(-np.log(1 - key)) - score[subs], bag))
        else:
            order = np.lexsort((key, bag))
        wanted = np.ceil(sizes * self.fraction) if self.fraction is not None else np.minimum(sizes, self.count or 0)
        taken = order[np.arange(len(subs)) - ptr[bag] < wanted[bag]]  # bags stand in their places in order, too
        return subs[np.sort(taken)]
