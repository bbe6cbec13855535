"""How fast training steps are on a GPU, how exact, and how far from what the hardware allows.

    PYTHONPATH=src python benchmarks/gpu.py --data FOLDER [--only check:3,steps:4,epoch:4] [--out results/gpu]

FOLDER holds the datasets as .npz files. Writes one JSON file per section, with device, versions and date, and prints a
table at the end. A section stops when its minutes are used up; what has been measured by then is written.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from common import code
from gpu_parts.cases import CASES, POLICIES, Dataset
from gpu_parts.check import check
from gpu_parts.epoch import epoch
from gpu_parts.epoch import line_of as epoch_line
from gpu_parts.measure import ceilings
from gpu_parts.steps import VARIANTS, measure

ORDER = (  # what matters most first
    [(b, "marking", v) for b in (128, 32, 512) for v in ("distinct graphed",)]
    + [(128, "edge deletion", "distinct graphed")]
    + [(128, "marking", v) for v in VARIANTS[1:6]]
    + [(b, p, "distinct graphed") for b in (32, 512) for p in ("edge deletion",)]
    + [(b, "marking", v) for b in (32, 512) for v in ("full", "distinct eager")]
    + [(128, "marking", "full compiled")]
)


class Run:
    """What there is to be done, until the time is up."""

    def __init__(self, args: argparse.Namespace) -> None:
        self.out = Path(args.out or os.environ.get("OUT") or "results/gpu")
        self.out.mkdir(parents=True, exist_ok=True)
        self.end = 0.0
        self.batches, self.workers, self.variants = args.batches, args.workers, args.variants
        self.data = {c.name: Dataset(Path(args.data), c) for c in CASES if not args.cases or c.name in args.cases}
        self.cases = [c for c in CASES if c.name in self.data]
        self.about = {
            "device": torch.cuda.get_device_name(), "torch": torch.__version__, "python": platform.python_version(),
            "cuda": torch.version.cuda, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
            "code": code("nn"),  # models and kernels, not plans: steps with equal ones ran on the same kernels
        }  # fmt: skip

    def section(self, name: str) -> list[str]:
        name, _, minutes = name.partition(":")
        self.end = time.perf_counter() + 60 * float(minutes or 60)
        return {"check": self.check, "steps": self.steps, "tune": self.tune, "epoch": self.epoch}[name]()

    def over(self) -> bool:
        return time.perf_counter() > self.end

    def write(self, name: str, rows: Any) -> None:
        text = json.dumps({"about": self.about, "results": rows}, indent=1, default=str)
        (self.out / f"{name}.json").write_text(text)

    def check(self) -> list[str]:
        rows: dict[str, Any] = {}
        for case in self.cases:
            for policy in POLICIES:
                if self.over():
                    break
                try:
                    rows[f"{case.name}, {policy}"] = check(case, self.data[case.name], policy)
                except Exception:
                    rows[f"{case.name}, {policy}"] = traceback.format_exc()
                print("check", case.name, policy, rows[f"{case.name}, {policy}"], flush=True)
                self.write("check", rows)
        return [f"{name}: {result}" for name, result in rows.items()]

    def steps(self) -> list[str]:
        limits = ceilings()
        print("ceilings", {k: f"{v:.3g}" for k, v in limits.items()}, flush=True)
        rows: list[dict[str, Any]] = []
        if self.variants and (self.out / "steps.json").exists():  # what is not measured again stays as it is
            rows = json.loads((self.out / "steps.json").read_text())["results"]["rows"]
        for batch, policy, variant in ORDER:
            for case in self.cases:
                if self.over() or (self.variants and variant not in self.variants):
                    break
                profile = variant == "distinct graphed" and policy == "marking"
                row = {"case": case.name, "batch": batch, "policy": policy, "variant": variant}
                row |= {k: self.about[k] for k in ("date", "code")}
                begin = time.perf_counter()
                try:
                    row |= measure(case, self.data[case.name], policy, batch, variant, profile)
                except Exception:
                    row |= {"error": traceback.format_exc()}
                    print(row["error"], flush=True)
                if "ms" in row:
                    row |= floor_of(row, limits, case.targets.get(batch) if policy == "marking" else None)
                rows = [old for old in rows if any(old[k] != row[k] for k in ("case", "batch", "policy", "variant"))]
                rows.append(row)
                print(line_of(row), f"  took {time.perf_counter() - begin:.1f} s", flush=True)
                for kernel in row.get("kernels", [])[: 14 if batch == 128 else 0]:
                    print(f"      {kernel[2]:8.1f} us {kernel[1]:4d} x  {kernel[0]}", flush=True)
                row["kernels"] = row.get("kernels", [])[:12]
                self.write("steps", {"ceilings": limits, "rows": rows})
        return [line_of(row) for row in rows]

    def epoch(self) -> list[str]:
        rows: list[dict[str, Any]] = []
        for batch in self.batches:
            for case in self.cases:
                if self.over():
                    break
                row: dict[str, Any] = {"case": case.name, "batch": batch, "policy": "marking"}
                try:
                    row |= epoch(case, self.data[case.name], "marking", batch, self.workers)
                except Exception:
                    row |= {"error": traceback.format_exc()}
                    print(row["error"], flush=True)
                rows.append(row)
                print(epoch_line(row), flush=True)
                self.write("epoch", rows)
        return [epoch_line(row) for row in rows]

    def tune(self) -> list[str]:
        from gpu_parts.tune import lists, norms, products, together  # which cannot be had without Triton

        lines: list[str] = []
        shapes = ((40000, 300), (82000, 128), (71000, 32))
        parts = [lists(c, self.data[c.name], 128) for c in self.cases if c.name not in ("CEXP", "moltox21")]
        parts += [f(*shape) for f in (together, norms, products) for shape in shapes]
        for part in parts:
            if self.over():
                break
            try:
                for name, best in part:
                    lines += [name, *(f"    {b}" for b in best)]
                    print("\n".join(lines[-1 - len(best) :]), flush=True)
            except Exception:
                print(traceback.format_exc(), flush=True)
        self.write("tune", lines)
        return lines


def floor_of(row: dict[str, Any], limits: dict[str, float], target: float | None) -> dict[str, Any]:
    rate = limits["fp32_flop_per_s"]
    if row["variant"].endswith(("tf32", "bf16")):
        rate = limits[row["variant"][-4:] + "_flop_per_s"]
    move, compute = 1e3 * row["bytes"] / limits["copy_bytes_per_s"], 1e3 * row["flop"] / rate
    launches = sum(k[1] for k in row.get("kernels", []))
    floor = max(move, compute)
    return {"move_ms": move, "compute_ms": compute, "floor_ms": floor, "ratio": row["ms"] / floor, "target_ms": target,
            "launches": launches}  # fmt: skip


def line_of(row: dict[str, Any]) -> str:
    head = f"{row['case']:14}{row['batch']:4} {row['policy']:14}{row['variant']:22}"
    if "ms" not in row:
        return head + str(row.get("skipped") or row.get("error", "")[-120:])
    target = f" target {row['target_ms']}" if row.get("target_ms") else ""
    return head + (
        f"{row['ms']:8.3f} ms ±{row['spread_ms']:.3f}  move {row['move_ms']:.3f} compute {row['compute_ms']:.3f}  "
        f"{row['ratio']:5.1f} x floor  {row['peak_bytes'] / 2**20:8.0f} MiB  {row['launches'] or '':>4}{target}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of .npz files")
    parser.add_argument("--only", default="check,steps", help="sections, with minutes: check:3,steps:4,epoch:4,tune")
    kept = f"of steps: {', '.join(VARIANTS)}; others are kept as they are"
    parser.add_argument("--variants", default=[], type=lambda s: s.split(","), help=kept)
    names = ", ".join(c.name for c in CASES)
    parser.add_argument("--cases", default="", type=lambda s: s.split(",") if s else [], help=names)
    parser.add_argument("--batches", default=[128, 32], type=lambda s: [int(b) for b in s.split(",")], help="for epoch")
    parser.add_argument("--workers", default=None, type=int, help="for epoch; by default one per core but one, at most 15")
    parser.add_argument("--out", default="", help="folder of the results")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this machine has no GPU that torch can use")
    run = Run(args)
    table = [line for name in args.only.split(",") for line in run.section(name)]
    print("\n".join(["", str(run.about), *table]), flush=True)


if __name__ == "__main__":
    main()
