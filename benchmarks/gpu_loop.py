"""What a training loop of one's own costs on a GPU: ms per step with data, against captured and eager steps.

    PYTHONPATH=src python benchmarks/gpu_loop.py --data FOLDER [--cases PROTEINS,molhiv] [--batch 128] [--out results/gpu]

The loop is that of examples/gpu_loop.py: batches of ``enfa.DataLoader(..., device="cuda")``, the model, a loss, ``backward``
and a fused Adam, written out. *Captured step*: ``enfa.Step`` on the same loader. *Eager*: the same loop with every model run
eagerly. *One thread*: the loop with backward passes in Python's own thread
(``torch.autograd.set_multithreading_enabled(False)``). Epochs count in which nothing ran eagerly or was captured, after the
loader's stock is used up. FOLDER holds the datasets as .npz files. Writes loop.json, with device, versions and date, and
prints a table.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import json
import os
import platform
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch

import enfa
from common import code
from gpu_parts.cases import CASES, POLICIES, Case, Dataset, loss_for, model_for
from gpu_parts.epoch import MOST, WARM, sustained


def loader_for(data: Dataset, case: Case, batch: int, workers: int | None) -> enfa.DataLoader:
    chosen = np.sort(np.random.RandomState(0).permutation(len(data))[: MOST * batch])
    graphs = [data.graph(g) for g in chosen]
    compiled = enfa.compile(graphs, POLICIES["marking"](), model_for(case, data), progress=False)
    compiled.y = data.targets(chosen)
    return enfa.DataLoader(compiled, batch, shuffle=True, num_workers=workers, device="cuda")


class Loop:
    """The loop written out. ``how``: within which context, such as ``enfa.eagerly``."""

    def __init__(self, case: Case, data: Dataset, how: Callable[[], Any] = nullcontext) -> None:
        self.model, self.loss = model_for(case, data, "cuda").train(), loss_for(data)
        self.optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True)
        self.how = how

    def epoch(self, loader: enfa.DataLoader) -> None:
        loss: Any = self.loss
        with self.how():
            for batch in loader:
                self.optimiser.zero_grad()
                loss(self.model(batch), batch.y).backward()
                self.optimiser.step()

    def busy(self) -> int:
        """Calls so far that were not replayed."""
        replays = self.model.__dict__.get("_replays")
        return 0 if replays is None else replays.eager + replays.captured


class Captured(Loop):
    """Whole steps."""

    def __init__(self, case: Case, data: Dataset) -> None:
        super().__init__(case, data)
        optimiser = torch.optim.Adam(self.model.parameters(), lr=1e-3, fused=True, capturable=True)
        self.step = enfa.Step(self.model, optimiser, self.loss)  # type: ignore[arg-type]

    def epoch(self, loader: enfa.DataLoader) -> None:
        for batch in loader:
            self.step(batch)

    def busy(self) -> int:
        return self.step.eager_steps + self.step.num_captured


def seconds_of(loop: Loop, loader: enfa.DataLoader) -> float:
    torch.cuda.synchronize()
    begin = time.perf_counter()
    loop.epoch(loader)
    torch.cuda.synchronize()
    return time.perf_counter() - begin


def without_waiting(loop: Loop, loader: enfa.DataLoader) -> float:
    """ms that Python takes for a step: of a few at a time, before the device can be waited for, with the workers asleep."""
    batches: Any = iter(loader)
    few = [next(batches) for _ in range(3)]
    time.sleep(1)  # by then they have made all that they make ahead
    found, rounds = 0.0, 10
    for _ in range(rounds):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        loop.epoch(few)  # type: ignore[arg-type]
        found += time.perf_counter() - begin
    torch.cuda.synchronize()
    del batches
    return 1e3 * found / rounds / len(few)


def parts(loop: Loop, loader: enfa.DataLoader) -> dict[str, float]:
    """ms that each line of the loop keeps Python for in an epoch's step, waiting included."""
    loss, batches = loop.loss, iter(loader)
    found: Any = None
    work: dict[str, Callable[[Any], Any]] = {
        "zero_grad": lambda _: loop.optimiser.zero_grad(), "model": lambda batch: loop.model(batch),
        "loss": lambda batch: loss(found, batch.y), "backward": lambda _: found.backward(),  # type: ignore[operator]
        "step": lambda _: loop.optimiser.step(),
    }  # fmt: skip
    spent = dict.fromkeys(("data", *work), 0.0)
    with loop.how():
        for _ in range(len(loader)):
            begin = time.perf_counter()
            batch = next(batches)
            spent["data"] += time.perf_counter() - begin
            for name, act in work.items():
                begin = time.perf_counter()
                found = act(batch)
                spent[name] += time.perf_counter() - begin
        torch.cuda.synchronize()
        next(batches, None)  # the epoch's end
    return {name: 1e3 * seconds / len(loader) for name, seconds in spent.items()}


def measured(loop: Loop, loader: enfa.DataLoader) -> dict[str, Any]:
    first: list[float] = []
    before = -1
    while len(first) < 3 or (loop.busy() > before and len(first) < WARM):
        before = loop.busy()
        first.append(seconds_of(loop, loader))
    seconds, left_out = sustained(lambda: seconds_of(loop, loader), loop.busy, len(loader))
    if not seconds:
        raise RuntimeError("Expected epochs in which every step is replayed, got none")
    each = sum(seconds) / len(seconds) / len(loader)
    return {
        "ms": 1e3 * each, "least_ms": 1e3 * min(seconds) / len(loader), "python_ms": without_waiting(loop, loader),
        "parts_ms": {} if isinstance(loop, Captured) else parts(loop, loader), "first_epochs_s": first,
        "epochs": len(seconds), "left_out": left_out, "not_replayed": loop.busy(),
    }  # fmt: skip


def compare(case: Case, data: Dataset, batch: int, workers: int | None) -> dict[str, Any]:
    loader = loader_for(data, case, batch, workers)
    assert loader.packed is not None
    row: dict[str, Any] = {"case": case.name, "batch": batch, "batches": len(loader), "workers": loader.packed.num_workers}
    for name, make in WAYS.items():
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        row[name] = measured(make(case, data), loader)
        row[name]["peak_mb"] = torch.cuda.max_memory_allocated() / 2**20
        print(f"{case.name:14} {name:8} {row[name]['ms']:8.3f} ms", flush=True)
    loader.close()
    return row | {"ratio": row["loop"]["ms"] / row["captured"]["ms"]}


WAYS: dict[str, Callable[[Case, Dataset], Loop]] = {
    "captured": Captured,
    "loop": Loop,
    "one_thread": lambda case, data: Loop(case, data, lambda: torch.autograd.set_multithreading_enabled(False)),
    "eager": lambda case, data: Loop(case, data, enfa.eagerly),
}


def table(rows: list[dict[str, Any]]) -> str:
    there = [row for row in rows if "ratio" in row]
    lines = ["|  | " + " | ".join(row["case"] for row in there) + " |", "|---|" + "--:|" * len(there)]
    for name, what in (("eager", "the loop, eager"), ("loop", "**the loop**"), ("captured", "captured step")):
        lines.append(f"| {what} | " + " | ".join(f"{row[name]['ms']:.3g}" for row in there) + " |")
    lines.append("| the loop / captured step | " + " | ".join(f"{row['ratio']:.2f}" for row in there) + " |")
    lines.append("| Python's part of the loop | " + " | ".join(f"{row['loop']['python_ms']:.3g}" for row in there) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, help="folder of .npz files")
    names = ", ".join(c.name for c in CASES)
    parser.add_argument("--cases", default="", type=lambda s: s.split(",") if s else [], help=names)
    parser.add_argument("--batch", default=128, type=int)
    parser.add_argument("--workers", default=None, type=int, help="by default one per core but one, at most 15")
    parser.add_argument("--out", default="", help="folder of the results")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("this machine has no GPU that torch can use")
    out = Path(args.out or os.environ.get("OUT") or "results/gpu")
    out.mkdir(parents=True, exist_ok=True)
    about = {
        "device": torch.cuda.get_device_name(), "torch": torch.__version__, "python": platform.python_version(),
        "cuda": torch.version.cuda, "date": datetime.datetime.now(datetime.timezone.utc).isoformat(),
        "code": code("nn"),
    }  # fmt: skip
    path, names = out / "loop.json", [case.name for case in CASES]
    before = json.loads(path.read_text())["results"] if path.exists() else []
    rows = [row for row in before if args.cases and row["case"] not in args.cases]  # these stay
    for case in CASES:
        if args.cases and case.name not in args.cases:
            continue
        try:
            rows.append(compare(case, Dataset(Path(args.data), case), args.batch, args.workers))
        except Exception:
            error = traceback.format_exc()
            rows.append({"case": case.name, "batch": args.batch, "error": error})
            print(error, flush=True)
        rows.sort(key=lambda row: names.index(row["case"]))
        path.write_text(json.dumps({"about": about, "results": rows}, indent=1))
    print(f"\nms per step with data, batch {args.batch}, {about['device']}\n\n{table(rows)}", flush=True)


if __name__ == "__main__":
    main()
