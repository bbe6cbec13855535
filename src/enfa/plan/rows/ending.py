"""Where sharing ends: the step from which on nearly every pair has a row of its own anyway.

From there on distinct rows save next to nothing, and cost lists of their own in every step, and gathers where two steps meet.
"""

from dataclasses import replace

import numpy as np

from enfa.edits import Edits
from enfa.graphs import GraphSet
from enfa.plan.rows.builder import start_kinds
from enfa.plan.rows.distinct import step_rows_of
from enfa.plan.step import Program

__all__ = ["check_unshared", "end_of_sharing"]

SAMPLE = 128  # graphs: about as many as a batch has, in which less is shared than in a dataset
FEW = 16  # of these, looked at first
MORE = 0.15  # so many more rows, at most, than if all were shared
FEWEST = 3  # steps of pairs behind it, for fewer it is not worth while;
SMALLEST = 20_000  # and pairs of the sample,
LARGEST = 20_000_000  # of which there are no more: a graph that alone has so many is not written out, and compiled only once


def end_of_sharing(graphs: GraphSet, edits: Edits, program: Program) -> int | None:
    """A step for ``program.unshared``, from the distinct rows of some graphs; None where sharing goes on."""
    rng = np.random.default_rng(0)
    order, sizes = rng.permutation(graphs.num_graphs)[:SAMPLE], np.append(0, np.cumsum(edits.sizes(graphs)))
    up_to = np.cumsum(np.diff(sizes[edits.sub_ptr])[order])
    order, up_to = order[up_to <= LARGEST], up_to[up_to <= LARGEST]
    if not program.counted or not len(order) or up_to[-1] < SMALLEST:
        return None
    # fewer graphs share less: where sharing goes on among a few, it does among more, and most datasets are done then
    found = _ending_among(np.sort(order[:FEW]), graphs, edits, program)
    return None if found is None else _ending_among(np.sort(order), graphs, edits, program)


def _ending_among(chosen: np.ndarray, graphs: GraphSet, edits: Edits, program: Program) -> int | None:
    some, of_some = graphs.subset(chosen), edits.subset(graphs, chosen)
    whole = replace(program, unshared=None)
    rows = step_rows_of(some, of_some, whole, start_kinds(some, program.share)[0])
    # what is spread is written where it is added to something
    of_pairs = np.array([step.kind == "pairs" and step.op != "spread" for step in program.steps])
    pairs, shared = int(of_some.sizes(some).sum()), np.array([len(found.keys) for found in rows])
    more = np.cumsum(np.where(of_pairs, pairs - shared, 0)[::-1])[::-1]  # by step, if no rows were shared from there on
    behind = np.cumsum(of_pairs[::-1])[::-1]
    good = np.flatnonzero((more <= MORE * shared[of_pairs].sum()) & (behind >= FEWEST) & (np.arange(len(rows)) > 0))
    return int(good[0]) if len(good) else None


def check_unshared(program: Program) -> Program:
    """The same, if there is such a step."""
    at, steps = program.unshared, len(program.steps)
    if at is not None and (not isinstance(at, int) or isinstance(at, bool) or not 1 <= at < steps):
        raise ValueError(f"Expected unshared to be a step from 1 to {steps - 1}, 'auto' or None, got {at!r}")
    return program
