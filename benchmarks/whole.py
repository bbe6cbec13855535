"""A trained model, from the data on: ESAN's own loop beside ``enfa train``, in seconds, gigabytes, joules and score.

    git clone https://github.com/beabevi/ESAN
    PYTHONPATH=src python benchmarks/whole.py --data FOLDER --esan ESAN [--cases PROTEINS,moltox21] [--epochs 2] [--part 0.1]

PROTEINS is one fold; moltox21 and peptides-func are 30 epochs. Each side is a process of its own, one after the other on one
GPU, watched by nvidia-smi (power and memory of the whole device); without one there are neither joules nor GPU memory.
``--epochs`` and ``--part`` (of the graphs, for ESAN) shorten it: seconds of the whole are then extrapolated, from what the
fastest epoch took and what was done before the first, and stand under "extrapolated"; scores of a shortened run are none.
``--beside`` is for a whole run of ESAN's that shares the GPU with other work: of it only the score is kept, beside what a
shortened run alone took. Both sides evaluate after every epoch, as they do by themselves: ESAN on molecules on the training
set, too. Results: whole.json, after each side.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from common import ROOT, code, cold_environment, device, stamp
from enfa.report.machine import machine

# config, and epochs of a whole run
CASES = {
    "PROTEINS": ("PROTEINS-ds-nm", 350),
    "moltox21": ("ogbg-moltox21-ds-nm", 30),
    "peptides-func": ("peptides-func-ds-nm", 30),
}
EVERY = 0.25  # seconds between two looks at the GPU


class Watch:
    """Joules and most gigabytes of the GPU while something runs."""

    def __init__(self) -> None:
        self.power: list[float] = []
        self.memory: list[float] = []
        query = [
            "nvidia-smi",
            "--query-gpu=power.draw,memory.used",
            "--format=csv,noheader,nounits",
            f"-lms={EVERY * 1000:.0f}",
        ]
        try:
            self.process = subprocess.Popen(query, stdout=subprocess.PIPE, text=True, stderr=subprocess.DEVNULL)
        except OSError:
            self.process = None  # type: ignore[assignment]
            return
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        for line in self.process.stdout or ():
            try:
                power, memory = (float(value) for value in line.split(","))
            except ValueError:  # a driver that does not tell
                continue
            self.power.append(power)
            self.memory.append(memory)

    def end(self, seconds: float) -> dict[str, float]:
        if self.process is None:
            return {}
        self.process.terminate()
        self.process.wait()
        if not self.power:
            return {}
        return {
            "joules": statistics.fmean(self.power) * seconds,
            "gpu_gb": max(self.memory) * 2**20 / 1e9,
            "looks": len(self.power),
        }


def watched(command: list[str], minutes: float, env: dict[str, str] | None = None) -> dict[str, Any]:
    """A process, until it ends or its minutes are over."""
    watch, begin = Watch(), time.perf_counter()
    try:
        done = subprocess.run(command, timeout=60 * minutes, capture_output=True, text=True, env=env)
        failed = None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1][:200]
    except subprocess.TimeoutExpired:
        failed = f"stopped after {minutes} minutes"
    seconds = time.perf_counter() - begin
    host = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e9  # of the largest process so far
    return {"seconds": seconds, "host_gb": host, **watch.end(seconds), **({"failed": failed} if failed else {})}


def esan(args: argparse.Namespace, case: str, epochs: int, out: Path) -> dict[str, Any]:
    own = [sys.executable, __file__, "--only", case, "--esan", str(args.esan), "--data", args.data, "--part", str(args.part)]
    found = watched([*own, "--epochs", str(epochs), "--out", str(out)], args.minutes)
    if "failed" not in found:
        found |= json.loads((out / "esan.json").read_text())
        best = max(range(epochs), key=lambda i: found["valid"][i])
        found["score"] = (found["test"] or found["valid"])[best]
        whole = CASES[case][1]
        if epochs < whole or args.part < 1:
            done = found["prepare_s"] + sum(found["epoch_s"])
            more = (found["prepare_s"] + whole * min(found["epoch_s"])) / args.part  # the first epochs are slower
            found["extrapolated"] = {"seconds": found["seconds"] - done + more, "epochs": whole}
    return found


def ours(args: argparse.Namespace, case: str, epochs: int, out: Path) -> dict[str, Any]:
    config = str(ROOT / "configs" / f"{CASES[case][0]}.yaml")
    command = [
        sys.executable,
        "-m",
        "enfa",
        "train",
        config,
        f"root={args.data}",
        f"epochs={epochs}",
        f"out={out}",
        "--no-progress",
    ]
    found = watched(command, args.minutes, cold_environment(out))
    if "failed" not in found:
        record = json.loads(next(out.rglob("result.json")).read_text())
        found |= {"score": record["test"] or record["valid"], "parts": record["parts"], "metric": record["metric"]}
        whole = CASES[case][1]
        if epochs < whole:
            taken = record["parts"]["epochs"]
            found["extrapolated"] = {"seconds": found["seconds"] + taken * (whole / epochs - 1), "epochs": whole}
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of .npz files")
    parser.add_argument("--esan", type=Path, required=True, help="folder of the authors' code")
    parser.add_argument("--cases", default=list(CASES), type=lambda s: s.split(","))
    parser.add_argument("--epochs", type=int, help="fewer than a whole run has; the rest is extrapolated, and said to be")
    parser.add_argument(
        "--part", type=float, default=1.0, help="of the graphs, for ESAN; the rest is extrapolated, and said to be"
    )
    parser.add_argument("--beside", action="store_true", help="other work shares the GPU: keep ESAN's score only")
    parser.add_argument("--sides", default=["enfa", "esan"], type=lambda s: s.split(","))
    parser.add_argument("--minutes", type=float, default=30, help="of each side of each case")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "gpu")
    parser.add_argument("--only", choices=CASES, help=argparse.SUPPRESS)  # ESAN's side, in this process
    args = parser.parse_args()
    if args.only:
        from enfa.training import read_config
        from peer_parts.esan_loop import train

        config = read_config(ROOT / "configs" / f"{CASES[args.only][0]}.yaml", [f"root={args.data}"])
        (args.out / "esan.json").write_text(json.dumps(train(args.esan, config, args.epochs, args.part)))
        return
    path = args.out / "whole.json"
    result: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {"cases": {}}
    about = {"device": device(), **machine(), "date": stamp()["date"], "code": code()}
    if not args.beside:
        result["about"] = about
    for case in args.cases:
        epochs = min(args.epochs or CASES[case][1], CASES[case][1])
        for side in args.sides:
            with tempfile.TemporaryDirectory() as folder:
                found = (ours if side == "enfa" else esan)(args, case, epochs, Path(folder))
            found |= {"epochs": epochs, "part": args.part if side == "esan" else 1.0}
            found |= {name: about[name] for name in ("date", "code")}
            sides = result["cases"].setdefault(case, {})
            if args.beside:  # its seconds, gigabytes and joules are not its own
                kept = ("score", "failed", "epochs", "part", "date", "code")
                sides[side] = sides.get(side, {}) | {"beside": {k: found[k] for k in kept if k in found}}
            else:
                sides[side] = found
            print(case, side, {k: v for k, v in found.items() if not isinstance(v, list)}, flush=True)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
