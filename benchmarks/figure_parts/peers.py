"""Rivals' own code beside the same networks here: steps, models, and whole trainings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from figure_parts.digits import few_digits

__all__ = ["best_of_peers", "model_figures", "peer_figures", "whole_figures"]

_OURS = ("the same network here, captured", ("ours, captured",))
# rows of the rivals' table: the best of these steps
_ROWS = (
    ("{}, eager", ("theirs",)), ("{}, torch.compile", ("theirs, torch.compile",)),
    (
        "{}, as a CUDA graph, captured by us, with torch.compile where that was measured and faster",
        ("theirs, CUDA graph", "theirs, torch.compile, CUDA graph"),
    ),
    _OURS,
)  # fmt: skip
_BEST = ("theirs", "theirs, torch.compile", "theirs, CUDA graph", "theirs, torch.compile, CUDA graph")
_FEW_ROWS = (
    ("{}, as its authors have it", ("theirs",)),
    ("{}, the fastest of that, torch.compile and a CUDA graph", _BEST),
    _OURS,
)
_Steps = dict[tuple[str, str], dict[str, Any]]  # what was measured of (peer, dataset)


def _steps(found: dict[str, Any]) -> _Steps:
    timed = {tuple(name.split(", ")): one for name, one in found["peers"].items() if "steps" in one}
    return {(who[0], who[1]): one for who, one in timed.items() if len(who) == 3 and who[2] == "marking"}


def _best(by: _Steps, peer: str, case: str, names: Sequence[str]) -> float | None:
    steps = by.get((peer, case), {}).get("steps", {})
    return min((steps[name]["ms"] for name in names if "ms" in steps.get(name, {})), default=None)


def _table(head: str, by: _Steps, rows: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    cases, peers = (list(dict.fromkeys(key[i] for key in by)) for i in (1, 0))
    lines = [f"| {' | '.join([head, *cases])} |", "|---" + "|--:" * len(cases) + "|"]
    for peer in peers:
        for title, names in rows:
            ms = [_best(by, peer, case, names) for case in cases]
            if any(ms):
                lines.append(f"| {title.format(peer)} | {' | '.join('–' if m is None else few_digits(m) for m in ms)} |")
    return lines


def peer_figures(path: Path) -> str:
    """All that was measured of rivals' own code; nothing where it was not."""
    if not path.exists():
        return ""
    found = json.loads(path.read_text())
    by = _steps(found)
    away = max(max(one["away"].values()) for one in by.values())
    commits = ", ".join(f"{peer} {one['commit']}" for peer, one in {key[0]: one for key, one in by.items()}.items())
    said = (
        f"{found['device']}, torch {found['torch']}, float32, node marking, {found['date']}; the same graphs, loss and "
        f"optimiser, by `benchmarks/peers.py`, which first compares outputs and gradients of copied weights in float64 (apart "
        f"by about {away:.0e}); commits: {commits}, {found.get('commit', 'unknown')} of this package. "
        "On molecules ESAN's network has MLPs twice as wide. A dash: it failed, or was not measured."
    )
    return "\n".join([*_table(f"rivals' own code, one step of {found['graphs']} graphs, ms", by, _ROWS), "", said])


def _uncompiled(by: _Steps) -> list[str]:
    """Peers, and the datasets on which nothing of theirs was compiled."""
    found: dict[str, list[str]] = {}
    for peer, case in by:
        if _best(by, peer, case, [name for name in _BEST if "compile" in name]) is None:
            found.setdefault(peer, []).append(case)
    return [f"{peer} ({', '.join(cases)})" for peer, cases in found.items()]


def best_of_peers(path: Path, more: str) -> str:
    """The same in short, with what it comes to, and what else there is to say of a GPU."""
    found = json.loads(path.read_text())
    by = _steps(found)
    pairs = [(_best(by, peer, case, _BEST), _best(by, peer, case, _OURS[1])) for peer, case in by]
    times = sorted(theirs / ours for theirs, ours in pairs if theirs and ours)
    return "\n".join([
        f"**On a GPU**, captured steps are {few_digits(times[0])} to {few_digits(times[-1])} times faster than the "
        f"fastest that we measured of two rivals' own code. {more} Steps that are not captured wait for Python, which launches "
        "every kernel: there shared rows save little on small graphs.",
        "",
        *_table(f"one training step of {found['graphs']} graphs, ms", by, _FEW_ROWS),
        "",
        f"The table: {found['device']}, torch {found['torch']}, float32, node marking, {found['date']}, with the kernels of "
        "that day; CUDA graphs of theirs were captured by us. torch.compile failed, or was not measured, of "
        f"{' and '.join(_uncompiled(by))}. Outputs and gradients were compared first, with copied weights. On molecules ESAN's "
        "network, and ours beside it, has MLPs twice as wide as PygHO's.",
    ])  # fmt: skip


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
        cells = [few_digits(steps[key]["ms"]) if "ms" in steps.get(key, {}) else "–" for key, _ in _MODEL_COLUMNS]
        there = [steps.get(key, {}).get("peak_bytes") for key in ("theirs", "ours, captured", "ours, captured, bfloat16")]
        peaks = ["–" if peak is None else few_digits(peak / 1e9) for peak in there]
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
        text = f"{case}, {ours['epochs']} epochs, {ours['seconds']:.0f} s, score {100 * ours['score']:.1f}%"
        if theirs is not None:
            whole, judged = theirs.get("extrapolated", theirs), ""
            if "extrapolated" in theirs:
                of = f" of {theirs['part']:.0%} of the graphs" if theirs["part"] < 1 else ""
                judged = f", judging by the fastest of {theirs['epochs']} epochs{of}"
            score = theirs["score"] if whole is theirs else theirs.get("beside", {}).get("score")
            scored = "" if score is None else f", {100 * score:.1f}%"
            text += f" (ESAN's own loop: {'about ' * bool(judged)}{few_digits(whole['seconds'])} s{judged}{scored})"
        said.append(text)
    return (
        "A whole training, from the command on, validations and test included, on such a GPU, with nothing kept of an "
        f"earlier run: {'; '.join(said)}. These are single runs, of networks that differ: on molecules ESAN's has MLPs twice "
        "as wide, and its loop evaluates on the training set, too "
        "([memory, energy, scores](GPU.md#a-whole-training-beside-esans-own))."
    )
