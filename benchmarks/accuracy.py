"""The claim: trained on distinct rows, the models reach the paper's accuracies.

    python benchmarks/accuracy.py --data FOLDER folds        # PROTEINS, EXP, CEXP: ten folds each, on CPU cores
    python benchmarks/accuracy.py --data FOLDER molecules --seeds 0-4 --jobs 5    # moltox21, molhiv, peptides-func, on one GPU
    python benchmarks/accuracy.py --data FOLDER dss --seeds 0-4    # all six datasets with DSS-GNN and node marking
    python benchmarks/accuracy.py --data FOLDER PROTEINS-ds-nm lr=0.001 name=other

FOLDER holds the raw files, or NAME.npz for each dataset. It is ``enfa sweep`` with the configs of a group: the same
training, the same result files (--results), nothing repeated that is done. Runs may share a GPU, best under NVIDIA's MPS:
``folds accelerator=gpu num_workers=1 --jobs 8`` took a third of the time per fold that a CPU core takes. ``cache=FOLDER``
compiles a dataset for the first run only.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from rich.console import Console

from enfa.training import read_config
from enfa.training.results.table import terminal_table
from enfa.training.sweep import numbers, run_sweep

CONFIGS = Path(__file__).resolve().parents[1] / "configs"
# The longest first, so that no core waits for a straggler.
FOLDS = [f"{data}-ds-{policy}" for data in ("PROTEINS", "CEXP", "EXP") for policy in ("ed", "nm", "nd")]
LARGE = ("ogbg-molhiv", "ogbg-moltox21", "peptides-func")
MOLECULES = [f"{data}-ds-{policy}" for data in LARGE for policy in ("ed", "nm", "nd")]
DSS = [f"{data}-dss-nm" for data in (*LARGE, "PROTEINS", "CEXP", "EXP")]
GROUPS = {
    "folds": (FOLDS, ["accelerator=cpu", "threads=1"]),
    "molecules": (MOLECULES, ["accelerator=auto"]),
    "dss": (DSS, ["accelerator=auto"]),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="+", help="groups (folds, molecules, dss), configs by name, and key=value settings")
    parser.add_argument("--data", required=True, help="folder of the datasets")
    parser.add_argument("--results", type=Path, default=Path("results"), help="folder of result files (results)")
    parser.add_argument("--out", default="runs", help="folder of checkpoints (runs)")
    parser.add_argument("--jobs", type=int, default=max(1, (os.cpu_count() or 2) - 1), help="runs at a time (cores - 1)")
    parser.add_argument("--minutes", type=float, help="stop after the epoch in which this time is up")
    parser.add_argument("--folds", help="which folds, such as 0-9 (all)")
    parser.add_argument("--seeds", default="0", help="which seeds (0)")
    args = parser.parse_intermixed_args()  # options may stand between configs and settings
    names: list[str] = []
    settings = [f"root={args.data}", f"out={args.out}"]
    for what in args.what:
        if "=" in what:
            settings.append(what)
        elif what in GROUPS:
            names += GROUPS[what][0]
            settings[:0] = GROUPS[what][1]
        else:
            names.append(what)
    configs = [read_config(CONFIGS / f"{name}.yaml", settings) for name in names]
    folds = None if args.folds is None else numbers(args.folds)
    results, failed = run_sweep(
        configs, folds, numbers(args.seeds), args.jobs, args.results, args.minutes, lambda line: print(line, flush=True)
    )
    Console().print(terminal_table(results))
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
