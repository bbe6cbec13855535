"""Whole trainings, as docs/gpu.md shows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

__all__ = ["started", "table", "trained", "whole"]


def table(head: list[str], rows: list[list[str]], texts: int = 1) -> list[str]:
    """``texts``: how many columns are no numbers, the first ones."""
    line = "| " + " | ".join(head) + " |"
    return [line, "|---" * texts + "|--:" * (len(head) - texts) + "|", *("| " + " | ".join(row) + " |" for row in rows), ""]


def trained(folder: Path) -> list[str]:
    """A whole training of a model whose rows few share: results of ``benchmarks/accuracy.py``, one run each."""
    found = [json.loads(p.read_text()) for p in sorted(folder.glob("ZINC-sswl-nmd*.json"), key=lambda p: len(p.name))]
    runs = {one["config"]["precision"]: one["runs"][0] for one in found}
    first = runs["32"]
    lines = [
        "## A model that shares little, trained",
        "",
        f"`enfa train` with `configs/ZINC-sswl-nmd.yaml`, GNN-SSWL+ with the papers' settings on ZINC-12k, {first['epochs']} "
        f"epochs, alone on one {first['hardware']}, and again with `precision=bf16`; validation after every epoch included, "
        "the test not. One run each, with other seeds: their errors differ by less than seeds do ([results](results.md), whose "
        "runs shared a GPU). Precision changes the epochs; the rest, reading and compiling, depends on what was cached.",
        "",
    ]
    body = [
        [{"32": "float32", "bf16": "bfloat16"}[kind], str(run["seed"]), f"{run['seconds']:.0f}",
         f"{run['parts']['epochs']:.0f}", f"{run['test']:.4f}"]
        for kind, run in runs.items()
    ]  # fmt: skip
    return lines + table(["", "seed", "seconds", "of these, epochs", "test MAE"], body)


def started(found: dict[str, Any]) -> list[str]:
    """``enfa train`` with everything cold and with everything kept, by ``benchmarks/start.py``."""
    about, names = found["about"], ["import", "read", "compile", "buckets", "kernels", "epochs", "test"]
    every = [run for runs in found["cases"].values() for run in runs.values()]
    rest = [run["seconds"] - sum(run["parts"].values()) for run in every]
    lines = [
        "## From the command to a trained model",
        "",
        f"`enfa train`, node marking, the configs' own settings, {found['epochs']} epochs with a validation each, and the "
        f"test, by `benchmarks/start.py`, {about['date']}: seconds from the start of Python to its end, {about['device']}, "
        f"{about['cores']} cores ({about['cpu']}). *Cold*: no kernel and no dataset was compiled before, and the compiled "
        "dataset is written to the disk. *Warm*: the same command again. Importing PyTorch alone takes "
        f"{found['import_s']:.1f} s there; *import* is PyTorch, PyG, Lightning and torchmetrics. *Kernels*: first steps, for "
        "which Triton's kernels are compiled side by side, and captures. The whole has "
        f"{min(rest):.1f} to {max(rest):.1f} s more than its parts, for Python's own start and end. PyTorch had been read from "
        "the disk before, all packages had their bytecode, as pip leaves it, and PROTEINS validates on its test fold.",
        "",
    ]
    body = [
        [
            case,
            state + (f", {run['date']}" if "date" in run else ""),  # measured earlier than the rest
            *(f"{run['parts'][name]:.1f}" if name in run["parts"] else "–" for name in names),
            f"{run['seconds']:.0f}",
        ]
        for case, runs in found["cases"].items()
        for state, run in runs.items()
    ]
    head = ["", "", "import", "read", "compile or load rows", "batches", "kernels", "epochs", "test", "whole"]
    return lines + table(head, body, texts=2)


def whole(found: dict[str, Any]) -> list[str]:
    """Whole trainings beside ESAN's own loop, by ``benchmarks/whole.py``."""
    lines = [
        "## A whole training, beside ESAN's own",
        "",
        "The authors' own loop and network on the same graphs, split, batches and epochs as `enfa train` with the config of "
        "the same dataset, node marking, each alone on a GPU of the kind above, by `benchmarks/whole.py`; ours with no kernel "
        "compiled before. On molecules ESAN evaluates on the training set, too, after every epoch, and its network is wider "
        "inside. Where not all was measured, seconds are extrapolated from the fastest epoch, memory "
        "is that of the part, and a score, where there is one, is that of a whole run beside other work on the GPU. "
        "Memory is the most that the whole GPU (PyTorch's reserves included), or the largest process, had in use; batches are "
        "made by 15 processes here, and by none beside its own in ESAN's loop. Joules are the GPU's, as its driver tells. "
        "PROTEINS is one fold, and its score the best on the test fold; scores of all folds, seeds and epochs, and seconds of "
        "runs that shared a GPU, are in [results](results.md). Rows that are missing were not measured.",
        "",
    ]
    body = [
        _run(case, {"enfa": "here", "esan": "ESAN's"}[side], run)
        for case, sides in sorted(found["cases"].items())
        for side, run in sorted(sides.items())
        if "failed" not in run
    ]
    return lines + table(["", "", "epochs", "seconds", "measured", "GPU GB", "host GB", "kJ", "score, %"], body, texts=2)


def _run(case: str, side: str, run: dict[str, Any]) -> list[str]:
    guessed = run.get("extrapolated")
    memory = [f"{run[name]:.1f}" if name in run else "–" for name in ("gpu_gb", "host_gb")]
    if guessed is None:
        whole = [str(run["epochs"]), f"{run['seconds']:,.0f}", "all"]
        joules = f"{run['joules'] / 1e3:.1f}" if "joules" in run else "–"
        return [case, side, *whole, *memory, joules, f"{100 * run['score']:.1f}"]
    part = f", {run['part']:.0%} of the graphs" * (run["part"] < 1)
    whole = [str(guessed["epochs"]), f"about {float(format(guessed['seconds'], '.2g')):,.0f}", f"{run['epochs']} epochs{part}"]
    beside = run.get("beside", {})
    return [case, side, *whole, *memory, "–", f"{100 * beside['score']:.1f}" if "score" in beside else "–"]
