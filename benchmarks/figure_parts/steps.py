"""One training step on every plan: on a CPU, and on a GPU."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

from figure_parts.digits import few_digits

__all__ = ["compile_figures", "figures", "gpu_figures", "sharing", "sharing_figures"]

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("full", "ego", "distinct")


def _faster(entry: dict[str, Any]) -> str:
    return few_digits(entry["full"]["ms"] / entry["distinct"]["ms"]) + "×"


def _hardware(on: dict[str, Any]) -> str:
    return f"{on['cpu']}, {on['threads']} threads, {on['memory_gb']} GB, torch {on['torch']}"


def _line(entry: dict[str, Any], random: dict[str, Any] | None) -> str:
    jk = ", JK concat" if entry["jk"] == "concat" else ""
    what = f"{entry['task']}: {entry['graphs']} graphs, {entry['conv'].upper()}, {entry['num_layers']} layers × "
    cells = [
        f"{what}{entry['hidden_channels']}{jk}",
        *(few_digits(entry[kind]["ms"]) for kind in KINDS),
        _faster(entry),
        f"**{_faster(random)}**" if random else "–",
        " / ".join(few_digits(entry[kind]["peak_mb"]) for kind in KINDS),
    ]
    return f"| {' | '.join(cells)} |"


def figures(results: Path) -> str:
    """The table of a CPU with its hardware, and what it comes to."""
    step = json.loads((results / "step.json").read_text())
    entries = {(e["task"], e["sample"]): e for e in step["results"]}
    times = sorted(e["full"]["ms"] / e["distinct"]["ms"] for (_, sample), e in entries.items() if sample == "random")
    lines = [
        f"**On a CPU** a training step on random graphs is {few_digits(times[0])} to {few_digits(times[-1])} times faster than "
        "the conventional model's on these datasets.",
        "",
        "| one training step | full, ms | ego, ms | distinct, ms | full / distinct | the same, random graphs | "
        "peak MB: full / ego / distinct |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(_line(e, entries.get((task, "random"))) for (task, sample), e in entries.items() if sample == "first"),
        "",
        f"{_hardware(step['machine'])}, float32; node marking; forward, backward and Adam, medians. "
        "Milliseconds and memory are of the first graphs of each file, where PROTEINS has more of its large graphs than a "
        "random sample, which shuffled training sees.",
    ]
    return "\n".join(lines)


def compile_figures(results: Path) -> str:
    """How fast datasets compile."""
    compiled = json.loads((results / "compile.json").read_text())
    whole = [
        f"{e['dataset']} {few_digits(e['compile_s'])} s ({few_digits(e['rows_per_s'] / 1e6)})" for e in compiled["results"]
    ]
    what = "Compiling a whole dataset, once, four layers (and millions of rows per second, of those that an edit reaches)"
    return f"{what}: {', '.join(whole)}; {_hardware(compiled['machine'])}."


_GPU_ROWS = (
    ("full", "full, eager"), ("ego", "ego, eager"), ("distinct eager", "distinct, eager"),
    ("distinct graphed", "distinct, as a CUDA graph"),
    ("distinct graphed bf16", "the same in bfloat16"),
)  # fmt: skip
_LOOP_ROWS = (
    ("eager", "distinct, a plain loop, eager"), ("loop", "distinct, a plain loop, captured"),
    ("captured", "distinct, `enfa.Step`"),
)  # fmt: skip


def gpu_figures(results: Path) -> str:
    """One training step of 128 graphs on a GPU."""
    found = json.loads((results / "steps.json").read_text())
    about, rows = found["about"], found["results"]["rows"]
    by = {(r["case"], r["variant"]): r for r in rows if r["batch"] == 128 and r["policy"] == "marking" and "ms" in r}
    cases = list(dict.fromkeys(case for case, _ in by))
    lines = ["| one training step of 128 graphs, ms | " + " | ".join(cases) + " |", "|---" + "|--:" * len(cases) + "|"]
    for variant, name in _GPU_ROWS:
        cells = [by[case, variant]["ms"] if (case, variant) in by else None for case in cases]
        lines.append(f"| {name} | " + " | ".join("–" if c is None else few_digits(c) for c in cells) + " |")
    loops = json.loads((results / "loop.json").read_text())
    timed = {row["case"]: row for row in loops["results"] if "ratio" in row}
    for variant, name in _LOOP_ROWS:
        cells = [few_digits(timed[case][variant]["ms"]) if case in timed else "–" for case in cases]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    now = about.get("code")
    old = [name for v, name in _GPU_ROWS if any(by[c, v].get("code") != now for c in cases if (c, v) in by)]
    earlier = f"; measured earlier, with earlier kernels: {', '.join(f'“{name}”' for name in old)}" if old else ""
    lines += [
        "",
        f"{about['device']}, torch {about['torch']}, float32 but for one row, node marking; a random sample of each dataset, "
        f"the models of [gpu.md](gpu.md){earlier}. "
        "The last three rows are shuffled epochs, data included; the first five steps alone. "
        "Eager steps wait for Python, which launches every kernel, and depend on the host: those of several runs "
        "are not to be compared. Captured ones do not wait. bfloat16 rounds: it is not exact.",
    ]  # fmt: skip
    return "\n".join(lines)


_PLANS = {"full": "full", "ego": "ego", "distinct": "**distinct**"}


def _captured() -> dict[tuple[str, str, int], dict[str, float]]:
    """Milliseconds of each plan, all captured, by dataset, policy and layers: of the report, GIN, the same batch."""
    timed = json.loads((ROOT / "docs" / "report-gpu" / "results" / "time.json").read_text())["results"]
    found = {}
    for key, row in timed.items():
        data, policy, conv, context, layers, kind = key.split(" | ")
        if (conv, context, kind) == ("gin", "False", "same batch") and all("ms" in row["plans"][p] for p in _PLANS):
            found[data, policy, int(layers)] = {plan: row["plans"][plan]["ms"] for plan in _PLANS}
    return found


def sharing() -> str:
    """What rows that are shared are worth where nothing else differs, in a sentence."""
    faster = sorted(ms["full"] / ms["distinct"] for ms in _captured().values())
    return (
        f"Sharing rows alone, with the conventional model's steps captured on the same kernels, makes them "
        f"{few_digits(faster[0])} to {few_digits(faster[-1])} times faster, in the median {few_digits(median(faster))} "
        f"({len(faster)} settings: six datasets, three policies, two to five layers, 32 graphs, GIN)."
    )


def sharing_figures() -> str:
    found = _captured()
    layers = max(key[2] for key in found)
    cases = [data for data, policy, count in found if (policy, count) == ("node marking", layers)]
    lines = [
        f"| all plans captured, 32 graphs, GIN, {layers} layers, ms | {' | '.join(cases)} |",
        "|---" + "|--:" * len(cases) + "|",
    ]
    for plan, name in _PLANS.items():
        lines.append(f"| {name} | {' | '.join(few_digits(found[c, 'node marking', layers][plan]) for c in cases)} |")
    return "\n".join(
        [
            *lines,
            "",
            f"This table: node marking, on the same GPU. {sharing()} The [report](report-gpu/report.md) has all of them.",
        ]
    )
