"""Write the figures of results/cpu and results/gpu into README.md, between its two marks: ``python benchmarks/readme.py``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- figures: benchmarks/readme.py -->", "<!-- end of figures -->"
KINDS = ("full", "ego", "distinct")


def _few_digits(value: float) -> str:
    """Two significant digits, as medians on a shared machine deserve: 0.14, 3.2, 48, 1,200."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"


def _faster(entry: dict[str, Any]) -> str:
    return _few_digits(entry["full"]["ms"] / entry["distinct"]["ms"]) + "×"


def _hardware(on: dict[str, Any]) -> str:
    return f"{on['cpu']}, {on['threads']} threads, {on['memory_gb']} GB, torch {on['torch']}"


def _line(entry: dict[str, Any], random: dict[str, Any] | None) -> str:
    jk = ", JK concat" if entry["jk"] == "concat" else ""
    what = f"{entry['task']}: {entry['graphs']} graphs, {entry['conv'].upper()}, {entry['num_layers']} layers × "
    cells = [
        f"{what}{entry['hidden_channels']}{jk}",
        *(_few_digits(entry[kind]["ms"]) for kind in KINDS),
        f"**{_faster(entry)}**",
        _faster(random) if random else "–",
        " / ".join(_few_digits(entry[kind]["peak_mb"]) for kind in KINDS),
    ]
    return f"| {' | '.join(cells)} |"


def figures(results: Path) -> str:
    """The table, its hardware, and how fast datasets compile."""
    step, compiled = (json.loads((results / f"{name}.json").read_text()) for name in ("step", "compile"))
    entries = {(e["task"], e["sample"]): e for e in step["results"]}
    lines = [
        "| one training step | full, ms | ego, ms | distinct, ms | full / distinct | on a random sample | "
        "peak MB: full / ego / distinct |",
        "|---|--:|--:|--:|--:|--:|--:|",
        *(_line(e, entries.get((task, "random"))) for (task, sample), e in entries.items() if sample == "first"),
        "",
        f"{_hardware(step['machine'])}, float32; node marking; forward, backward and Adam, medians; the first graphs of "
        "each file, and as many drawn at random.",
    ]
    whole = [
        f"{e['dataset']} {_few_digits(e['compile_s'])} s ({_few_digits(e['rows_per_s'] / 1e6)})" for e in compiled["results"]
    ]
    what = "Compiling a whole dataset, once, four layers (and millions of rows per second, of those that an edit reaches)"
    lines += ["", f"{what}: {', '.join(whole)}; {_hardware(compiled['machine'])}."]
    return "\n".join(lines)


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
        lines.append(f"| {name} | " + " | ".join("–" if c is None else _few_digits(c) for c in cells) + " |")
    loops = json.loads((results / "loop.json").read_text())
    timed = {row["case"]: row for row in loops["results"] if "ratio" in row}
    for variant, name in _LOOP_ROWS:
        cells = [_few_digits(timed[case][variant]["ms"]) if case in timed else "–" for case in cases]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    same = all(by[case, v].get("code") == about.get("code") for case in cases for v, _ in _GPU_ROWS if (case, v) in by)
    earlier = "" if same else "; the first three rows measured earlier, with earlier kernels"
    lines += [
        "",
        f"{about['device']}, torch {about['torch']}, float32 but for one row, node marking; a random sample of each dataset, "
        f"the models of [docs/gpu.md](docs/gpu.md){earlier}. "
        "The last three rows are shuffled epochs, data included; the first five steps alone. "
        "Eager steps wait for Python, which launches every kernel, and depend on the host: those of several runs "
        "are not to be compared. Captured ones do not wait. bfloat16 rounds: it is not exact.",
    ]  # fmt: skip
    timed = json.loads((ROOT / "docs" / "report-gpu" / "results" / "time.json").read_text())["results"]
    plans = [r["plans"] for key, r in timed.items() if "| gin | False |" in key and key.endswith("same batch")]
    faster = sorted(p["full"]["ms"] / p["distinct"]["ms"] for p in plans if "ms" in p["full"])
    lines[-1] += (
        f" With the steps of all plans captured, 32 graphs, GIN, three policies, two to five layers: "
        f"{_few_digits(faster[0])} to {_few_digits(faster[-1])} times faster than full, median "
        f"{_few_digits(median(faster))} ([report](docs/report-gpu/report.md))."
    )
    return "\n".join(lines)


# rows of the rivals' table: the best of these steps
_PEER_ROWS = (
    ("{}, eager", ("theirs",)), ("{}, torch.compile", ("theirs, torch.compile",)),
    (
        "{}, as a CUDA graph, captured by us, with torch.compile where that was measured and faster",
        ("theirs, CUDA graph", "theirs, torch.compile, CUDA graph"),
    ),
    ("the same network here, captured", ("ours, captured",)),
)  # fmt: skip


def peer_figures(path: Path) -> str:
    """Rivals' own code beside the same networks here; nothing where it was not measured."""
    if not path.exists():
        return ""
    found = json.loads(path.read_text())
    timed = {tuple(name.split(", ")): one for name, one in found["peers"].items() if "steps" in one}
    by = {(who[0], who[1]): one for who, one in timed.items() if len(who) == 3 and who[2] == "marking"}
    cases, peers = (list(dict.fromkeys(key[i] for key in by)) for i in (1, 0))
    head = f"rivals' own code, one step of {found['graphs']} graphs, ms"
    lines = [f"| {' | '.join([head, *cases])} |", "|---" + "|--:" * len(cases) + "|"]
    for peer in peers:
        for title, names in _PEER_ROWS:
            cells = []
            for case in cases:
                steps = by.get((peer, case), {}).get("steps", {})
                ms = [steps[name]["ms"] for name in names if "ms" in steps.get(name, {})]
                cells.append(_few_digits(min(ms)) if ms else "–")
            if any(cell != "–" for cell in cells):
                lines.append(f"| {title.format(peer)} | {' | '.join(cells)} |")
    away = max(max(one["away"].values()) for one in by.values())
    own = found.get("commit", "unknown")
    commits = ", ".join(f"{peer} {next(one['commit'] for key, one in by.items() if key[0] == peer)}" for peer in peers)
    lines += [
        "",
        f"{found['device']}, torch {found['torch']}, float32, node marking, {found['date']}; the same graphs, loss and "
        f"optimiser, by `benchmarks/peers.py`, which first compares outputs and gradients of copied weights in float64 (apart "
        f"by about {away:.0e}); commits: {commits}, {own} of this package. "
        "ESAN's network for molecules is wider inside than the one above. A dash: "
        "it failed, or was not measured.",
    ]  # fmt: skip
    return "\n".join(lines)


_MODEL_COLUMNS = (
    ("theirs", "theirs, eager"), ("theirs, torch.compile", "theirs, torch.compile"), ("ours, captured", "here, captured"),
    ("ours, captured, bfloat16", "in bfloat16"), ("ours, eager", "here, eager"),
)  # fmt: skip


def model_figures(path: Path) -> str:
    """Models whose authors have code for ZINC alone; nothing where they were not measured."""
    found = json.loads(path.read_text()) if path.exists() else {"peers": {}}
    models = {name: one for name, one in found["peers"].items() if ", " not in name and "steps" in one}
    if not models:
        return ""
    head = [f"their authors' own code on ZINC, one step of {found['graphs']} graphs, ms", *(name for _, name in _MODEL_COLUMNS)]
    lines = [f"| {' | '.join(head)} | peak GB: theirs / here / in bfloat16 | commit |", "|---" + "|--:" * (len(head) + 1) + "|"]
    for name, one in models.items():
        steps = one["steps"]
        cells = [_few_digits(steps[key]["ms"]) if "ms" in steps.get(key, {}) else "–" for key, _ in _MODEL_COLUMNS]
        there = [steps.get(key, {}).get("peak_bytes") for key in ("theirs", "ours, captured", "ours, captured, bfloat16")]
        peaks = ["–" if peak is None else _few_digits(peak / 1e9) for peak in there]
        lines.append(f"| {' | '.join([name, *cells, ' / '.join(peaks), one['commit']])} |")
    away = max(max(one["away"].values()) for one in models.values())
    graphs = any("ms" in step for one in models.values() for key, step in one["steps"].items() if key.endswith("CUDA graph"))
    captured = "" if graphs else " Their code could not be captured as a CUDA graph."
    codes = {one["ours at"] for one in models.values() if "ours at" in one}
    code = f", with this package's commit {', '.join(sorted(codes))}" if codes else ""
    halves = {step["at"] for one in models.values() for step in one["steps"].values() if "at" in step}
    code += f", in bfloat16 {', '.join(sorted(halves))}" if halves else ""
    where = "The same GPU; SUN on marked ego nets of three hops, GNN-SSWL+ on node marking by distances"
    runs = "theirs under torch.compile and ours in bfloat16 are of other runs than the rest"
    return "\n".join([*lines, "", f"{where}{code}; {runs}; apart by about {away:.0e}.{captured} A dash: it failed."])


def whole_figures(path: Path) -> str:
    """Whole trainings beside ESAN's own loop, in a sentence; nothing where they were not measured."""
    if not path.exists():
        return ""
    said = []
    for case, sides in sorted(json.loads(path.read_text())["cases"].items()):
        ours, theirs = (run if run is None or "failed" not in run else None for run in map(sides.get, ("enfa", "esan")))
        if ours is None or "extrapolated" in ours:
            continue
        text = f"{case}, {ours['epochs']} epochs, {ours['seconds']:.0f} s"
        if theirs is not None:
            whole, judged = theirs.get("extrapolated", theirs), ""
            if "extrapolated" in theirs:
                of = f" of {theirs['part']:.0%} of the graphs" if theirs["part"] < 1 else ""
                judged = f", judging by the fastest of {theirs['epochs']} epochs{of}"
            text += f" (ESAN's own loop: {_few_digits(whole['seconds'])} s{judged})"
        said.append(text)
    return (
        "A whole training, from the command on, validations and test included, on such a GPU, with nothing kept of an "
        f"earlier run: {'; '.join(said)}. ESAN's network for molecules is wider inside, and its loop evaluates them on the "
        "training set, too ([memory, energy, scores](docs/gpu.md#a-whole-training-beside-esans-own))."
    )


def with_figures(readme: str, results: Path) -> str:
    """README.md with everything between the marks replaced."""
    before, rest = readme.split(BEGIN)
    parts = [figures(results / "cpu"), gpu_figures(results / "gpu"), peer_figures(results / "gpu" / "peers.json"),
             model_figures(results / "gpu" / "peers.json"), whole_figures(results / "gpu" / "whole.json")]  # fmt: skip
    new = "\n\n".join(part for part in parts if part)
    return f"{before}{BEGIN}\n{new}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    readme = ROOT / "README.md"
    readme.write_text(with_figures(readme.read_text(), ROOT / "results"))
