"""Random small graphs, policies, models and plans, each compared with explicit subgraphs run by PyG's own layers.

    python benchmarks/fuzz.py --cases 100000 --seed 0 --out results/cpu/fuzz.json [--workers 2]
    python benchmarks/fuzz.py --seed 0 --only 12345           # one case, with all that differs

A case is a function of the seed and its number. Outputs, gradients of every parameter and BatchNorm's buffers are compared
in float64; with dropout in training the yardstick is the package's full plan, because masks come from what rows are
computed from. The first difference ends the run with the line that shows it again. Counts are kept in the file, and
running again goes on from there. See fuzz_parts/verdict.py for what counts as a difference.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import torch

from fuzz_parts.campaign import Campaign
from fuzz_parts.draw import draw_case
from fuzz_parts.verdict import VERDICTS, judge

SHOWN = ("policy", "conv", "readout", "model", "norm", "mode", "plan", "family", "yardstick", "live")


def _tell(campaign: Campaign) -> None:
    """The counts so far."""
    rate = f", {1e3 * campaign.cpu_seconds / campaign.next:.0f} ms of CPU time each" if campaign.next else ""
    verdicts = ", ".join(f"{campaign.verdicts.get(v, 0):,} {v}" for v in VERDICTS[:-1])
    print(f"{campaign.next:,} cases: {verdicts} ({campaign.seconds:.0f} s{rate})")
    for factor in SHOWN:
        values = campaign.counts.get(factor, {})
        print(f"  {factor}: " + ", ".join(f"{name} {sum(of.values()):,}" for name, of in values.items()), flush=True)


def _only(seed: int, number: int) -> int:
    case = draw_case(seed, number)
    verdict = judge(case)
    print(f"case {number}: {verdict.verdict}, against {verdict.yardstick}\n{case}")
    for name, off in sorted(verdict.far.items(), key=lambda item: -item[1]):
        print(f"  {name} is off by {off:.2g}")
    if verdict.what:
        print(f"{verdict.what}: off by {verdict.off:.2g}; the reference, disturbed, by {verdict.moved:.2g}")
    return int(verdict.verdict == "difference")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--cases", type=int, default=100_000, help="up to this number")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--only", type=int, help="run one case and say what differs; writes nothing")
    options.add_argument("--workers", type=int, default=1, help="processes")
    options.add_argument("--every", type=float, default=30.0, help="seconds between progress reports")
    options.add_argument("--out", type=Path, help="result file (default: results/cpu/fuzz.json)")
    arguments = options.parse_args()
    torch.set_num_threads(1)
    if arguments.only is not None:
        return _only(arguments.seed, arguments.only)
    out = arguments.out or Path(__file__).resolve().parent.parent / "results" / "cpu" / "fuzz.json"
    campaign = Campaign(out, arguments.seed)
    campaign.run(arguments.cases, arguments.workers, arguments.every, _tell)
    if campaign.difference is None:
        return 0
    print(f"case {campaign.difference['case']} differs: {campaign.difference['what']}, by {campaign.difference['off']}")
    print(f"python benchmarks/fuzz.py --seed {arguments.seed} --only {campaign.difference['case']}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
