"""Whether a plan gives what explicit subgraphs give, and if not, whether rounding explains it.

A case agrees if no quantity is off by more than ``TOLERANCE`` of its size. Rounding in float64 is 1e-16; a few hundred
additions, five layers and a norm or two make 1e-12 of it, while a row counted wrongly is off by parts in a hundred. Some
functions are worse, though: ReLU, max and the BatchNorm of a channel that is constant over the batch (which multiplies
rounding by 1 / sqrt(eps) = 316 in each layer) make anything out of the last digit.

So where a case is off, the reference is run again with weights and features off by a few units in the last place (equal
features stay equal, so that what is one row stays one) and all sums in another order. If the reference then differs from
itself about as much as the case does, the case says nothing: a "kink". Lest that hide a fault, a kink has to be explained:
the same graphs, policy, plan and model run again as a twin, with other weights and with eps = 0.1 in every BatchNorm, where
a miscounted row is as wrong as before and rounding is not blown up. A twin that agrees explains the kink; one that is off
by more than its own disturbance is a difference; where every twin is a kink, too, the case is "unclear", and counted so.

Where rows are equal and BatchNorm's variance is 0, explicit subgraphs can be the ones that err: their gradients, which
differ from row to row, grow by 316 in each norm on the way back, and what should remain of their sum is lost below their
last digit (outputs are not affected). So where only gradients differ, derivatives of the loss along random directions are
carried forward through the reference, which loses nothing; if they are the package's, the verdict is "digits lost".
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

import torch

from fuzz_parts.draw import Case
from fuzz_parts.run import Explicit, Full, Results, on_plan, plan_of

TOLERANCE = 1e-9
LEVELS = (1e-15, 1e-15, 1e-15, 4e-15, 4e-15, 1e-14)  # of disturbances, one run each
MORE = (1e-15, 4e-15, 1e-14) * 8  # where these move the reference, but less than the case is off: how far, takes more of them
FACTOR = 30.0  # the case may be off by so many times what the disturbed reference is
TWINS = 4
DIRECTIONS = 3
VERDICTS = ("same", "kink", "digits lost", "unclear", "refused by both", "difference")

_REFUSED = re.compile(r"^Expected more than 1 .*(value per channel|BatchNorm statistics, got 1)")


@dataclass
class Verdict:
    verdict: str
    live: bool = False  # whether gradients reached the first layer: otherwise little has been tested
    yardstick: str = "subgraphs"  # or "full", with dropout in training
    what: str = ""
    off: float = 0.0
    moved: float = 0.0  # by the disturbance
    far: dict[str, float] = field(default_factory=dict)  # all quantities that differ


def sizes(results: Results) -> dict[str, float]:
    """What each quantity is measured against: its largest entry, but at least a hundredth of its group's.

    A gradient that is zero but for rounding (a bias in front of BatchNorm) has no scale of its own.
    """
    own = {name: float(v.abs().max()) if v.numel() else 0.0 for name, v in results.items()}
    groups: dict[str, float] = {}
    for name, value in own.items():
        group = name.split(" ")[0]
        groups[group] = max(groups.get(group, 0.0), value)
    return {name: max(value, 1e-2 * groups[name.split(" ")[0]]) or 1.0 for name, value in own.items()}


def distances(found: Results, expected: Results) -> dict[str, float]:
    """How far each quantity is off, relative to its size; infinity where one is not finite or lacks."""
    scale, far = sizes(expected), float("inf")
    result = dict.fromkeys(found.keys() ^ expected.keys(), far)
    for name in found.keys() & expected.keys():
        a, b = found[name], expected[name]
        if a.shape != b.shape:
            result[name] = far
        elif a.numel():
            off = float((a.double() - b.double()).abs().max()) / scale[name]
            result[name] = off if math.isfinite(off) else far
    return result


def _run(make: object) -> Results | str:
    """Results, or the sentence with which BatchNorm refused a single row."""
    try:
        return make()  # type: ignore[operator]
    except ValueError as error:
        if not _REFUSED.search(str(error)):
            raise
        return str(error)


def _live(found: Results) -> bool:
    first = [v for name, v in found.items() if name.startswith("gradient layers.0.conv") and v.ndim > 1]
    return any(bool(v.any()) for v in first)


def _once(case: Case, twin: int) -> Verdict:
    model = case.model(twin)
    trains = case.options["dropout"] > 0 and model.training
    yardstick: Explicit | Full = Full(case, model) if trains else Explicit(case, model)
    named = "full" if trains else "subgraphs"
    expected = _run(yardstick.run)
    try:
        found = _run(lambda: on_plan(case, model, plan_of(case, model)))
    except Exception as error:  # whatever it is, the reference had none
        return Verdict("difference", False, named, f"{type(error).__name__}: {error}", float("inf"))
    if isinstance(expected, str) or isinstance(found, str):
        if isinstance(expected, str) and isinstance(found, str):
            return Verdict("refused by both", False, named)
        who = "the reference" if isinstance(expected, str) else "the package"
        return Verdict("difference", False, named, f"only {who} refused a single row in BatchNorm", float("inf"))
    live, off = _live(expected), distances(found, expected)
    far = {name: value for name, value in off.items() if not value <= TOLERANCE}
    if not far:
        return Verdict("same", live, named, off=max(off.values(), default=0.0))
    what = max(far, key=far.__getitem__)
    moved = 0.0
    for stream, level in enumerate((*LEVELS, *MORE)):
        if stream >= len(LEVELS) and not (TOLERANCE < moved < far[what] / FACTOR):
            break
        again = _run(lambda s=stream, v=level: yardstick.disturbed(s, v))
        if not isinstance(again, str):
            moved = max(moved, *distances(again, expected).values())
    if far[what] <= FACTOR * moved:
        verdict = "kink"
    else:
        verdict = _by_slopes(case, yardstick, found, far) if all(n.startswith("gradient") for n in far) else "difference"
    return Verdict(verdict, live, named, what, far[what], moved, far)


def _by_slopes(case: Case, yardstick: Explicit | Full, found: Results, far: dict[str, float]) -> str:
    """Whether the package's gradients are the slopes of the loss although they are not the reference's gradients."""
    tolerance = TOLERANCE if yardstick.exact_slopes else 1e-6
    if max(far.values()) < 10 * tolerance and not yardstick.exact_slopes:
        return "unclear"
    scale, rng = sizes(found), case.rng(4)
    for name in far:
        for _ in range(DIRECTIONS):
            direction = torch.from_numpy(rng.standard_normal(tuple(found[name].shape)))
            slope = yardstick.slope(name.removeprefix("gradient "), direction)
            off = abs(float((found[name] * direction).sum()) - slope)
            if not off <= tolerance * scale[name] * float(direction.abs().sum()):
                return "difference"
    return "digits lost"


def judge(case: Case) -> Verdict:
    """The verdict on a case."""
    verdict = _once(case, 0)
    if verdict.verdict != "kink":
        return verdict
    for twin in range(1, TWINS + 1):
        other = _once(case, twin)
        if other.verdict == "same":
            return verdict
        if other.verdict == "difference":
            other.what = f"twin {twin}: {other.what}"
            return other
    verdict.verdict = "unclear"
    return verdict
