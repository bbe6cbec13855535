"""From the command to a trained model: ``enfa train`` with everything cold, and with everything kept.

    PYTHONPATH=src python benchmarks/start.py --data FOLDER [--cases PROTEINS,peptides-func] [--epochs 30] [--out results/gpu]

*Cold*: no kernel of ours is compiled, no compiled dataset kept, no bytecode of the package written; each run has empty folders.
*Warm*: the same command again. Both are whole processes by a clock on the wall, from the start of Python to its end, test
included. The line *import* is what ``python -c "import torch"`` takes, the middle of three, which neither can do without. On a
machine that was just started the first process reads PyTorch from the disk, so one runs before all others and is noted apart.
Cases that are not measured again stay in start.json, with their date, where they were measured with the same settings.
Bytecode of Python and of installed packages is there in all runs, as pip leaves it, and as some images of containers do not.
FOLDER holds the datasets as .npz files. Writes start.json after each run and prints a table.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import Any

from common import ROOT, code, cold_environment, device, show, stamp
from enfa.report.machine import machine

CASES = {"peptides-func": "peptides-func-ds-nm", "moltox21": "ogbg-moltox21-ds-nm", "PROTEINS": "PROTEINS-ds-nm"}


def seconds_of(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Until it has ended, and until its last line."""
    begin = said = time.perf_counter()
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=errors, text=True)
        for _ in process.stdout or ():
            said = time.perf_counter()
        if process.wait():
            errors.seek(0)
            raise RuntimeError(f"{' '.join(command)} ended with {process.returncode}: {errors.read()[-2000:]}")
    return time.perf_counter() - begin, said - begin


def train(config: str, data: str, epochs: int, settings: list[str], env: dict[str, str]) -> dict[str, Any]:
    """One process; what it left besides its caches is deleted."""
    with tempfile.TemporaryDirectory() as out:
        given = [f"root={data}", f"epochs={epochs}", f"out={out}", *settings]
        command = [sys.executable, "-m", "enfa", "train", str(ROOT / "configs" / f"{config}.yaml"), *given, "--no-progress"]
        seconds, said = seconds_of(command, env)
        record = json.loads(next(Path(out).rglob("result.json")).read_text())
    return {"seconds": seconds, "until_last_line_s": said, "parts": record["parts"], "hardware": record["hardware"]}


def with_bytecode(folder: str) -> dict[str, str]:
    """An environment in which all that is installed has its bytecode, in that folder."""
    env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | {"PYTHONPYCACHEPREFIX": folder}
    places = {sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")}
    command = [sys.executable, "-m", "compileall", "-q", "-j", "0", *places]
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # templates do not compile
    return env


def both(config: str, args: argparse.Namespace, given: dict[str, str]) -> dict[str, Any]:
    """The same command twice, beginning with empty folders, and without bytecode of ours."""
    shutil.rmtree(Path(given["PYTHONPYCACHEPREFIX"]) / str(ROOT / "src").lstrip("/"), ignore_errors=True)
    with tempfile.TemporaryDirectory() as kept:
        env = cold_environment(kept, given)
        settings = [f"cache={kept}/compiled", *args.settings]
        return {state: train(config, args.data, args.epochs, settings, env) for state in ("cold", "warm")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of .npz files")
    parser.add_argument("--cases", default=list(CASES), type=lambda s: s.split(","))
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "gpu")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="settings of enfa train")
    args = parser.parse_args()
    path = args.out / "start.json"
    bytecode = tempfile.TemporaryDirectory()
    env = with_bytecode(bytecode.name)
    importing = [seconds_of([sys.executable, "-c", "import torch"], env)[0] for _ in range(4)]
    result: dict[str, Any] = {
        "about": {"device": device(), **machine(), "date": stamp()["date"], "code": code()},
        "epochs": args.epochs, "settings": args.settings,
        "import_first_s": importing[0], "import_s": statistics.median(importing[1:]), "cases": {},
    }  # fmt: skip
    before = json.loads(path.read_text()) if path.exists() else {}
    if all(before.get(name) == result[name] for name in ("epochs", "settings")):
        for runs in before["cases"].values():
            for run in runs.values():
                run.setdefault("date", before["about"]["date"])
        result["cases"] = before["cases"]
    path.parent.mkdir(parents=True, exist_ok=True)
    for case in args.cases:
        result["cases"][case] = both(CASES[case], args, env)
        print(case, result["cases"][case], flush=True)
        path.write_text(json.dumps(result, indent=1) + "\n")
    show(
        f"{args.epochs} epochs, seconds; importing torch takes {result['import_s']:.1f} of them",
        ["", "", *(names := ["import", "read", "compile", "buckets", "kernels", "epochs", "test"]), "whole"],
        [
            [case, state, *(f"{run['parts'].get(name, 0):.1f}" for name in names), f"{run['seconds']:.1f}"]
            for case, runs in result["cases"].items()
            for state, run in runs.items()
        ],
    )


if __name__ == "__main__":
    main()
