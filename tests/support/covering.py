"""A small set of cases in which every pair of values of every two factors occurs together.

The product of all factors of the exactness tester has tens of thousands of cases. Faults of index arithmetic show
where two things meet (a policy and a readout, a conv and a context), so all pairs are what has to be covered.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from typing import Any

Case = dict[str, Any]
Pair = tuple[str, Any, str, Any]


def all_pairs(factors: Mapping[str, Sequence[Any]], allowed: Callable[[Case], bool]) -> set[Pair]:
    """Every pair of values that some allowed case holds. ``allowed`` also judges cases with factors missing."""
    return {
        (f, a, g, b) for f, g in combinations(factors, 2) for a, b in product(factors[f], factors[g]) if allowed({f: a, g: b})
    }


def pairs_of(case: Case) -> set[Pair]:
    return {(f, case[f], g, case[g]) for f, g in combinations(case, 2)}


def covering(factors: Mapping[str, Sequence[Any]], allowed: Callable[[Case], bool], seed: int = 0) -> list[Case]:
    """Greedy: start each case from a pair that is still missing, then take the best of a few random completions."""
    draw = random.Random(seed)
    missing = all_pairs(factors, allowed)
    partners: dict[tuple[str, Any], set[tuple[str, Any]]] = {(name, v): set() for name in factors for v in factors[name]}
    for f, a, g, b in missing:
        partners[f, a].add((g, b))
        partners[g, b].add((f, a))
    cases = []

    while missing:
        f, a, g, b = draw.choice(sorted(missing, key=repr))
        best: tuple[int, Case] = (-1, {})
        for _ in range(60):
            fixed = {f: a, g: b}
            for name in draw.sample(list(factors), len(factors)):
                if name in fixed:
                    continue
                fits = [v for v in factors[name] if allowed({**fixed, name: v})]
                so_far = set(fixed.items())
                gain = {v: len(partners[name, v] & so_far) for v in fits}  # how many missing pairs it brings
                top = max(gain.values())
                fixed[name] = draw.choice([v for v in fits if gain[v] == top])
            case = _ordered(factors, fixed)
            best = max(best, (len(pairs_of(case) & missing), case), key=lambda found: found[0])
        cases.append(best[1])
        found = pairs_of(best[1]) & missing
        missing -= found
        for f, a, g, b in found:
            partners[f, a].discard((g, b))
            partners[g, b].discard((f, a))
    return cases


def _ordered(factors: Mapping[str, Sequence[Any]], case: Case) -> Case:
    return {name: case[name] for name in factors if name in case}
