"""The section on exactness: green or red."""

from __future__ import annotations

from typing import Any

from enfa.report.measure.exactness import QUANTITIES, TOLERANCE, is_exact
from enfa.report.show.page import Headline, Section, Table
from enfa.report.show.words import KIND_NAMES, figure_note, span, tiny

__all__ = ["show_exactness"]


def _cell(value: float, limit: float | None) -> str:
    return ("✗ " if limit is not None and not value <= limit else "") + tiny(value)


def show_exactness(stored: dict[str, Any]) -> Section:
    results = stored["results"]
    settings = stored["settings"]
    wrong = [key for key, r in results.items() if not is_exact(r)]
    largest = max((v for r in results.values() for kinds in r["float64"].values() for v in kinds.values()), default=0.0)
    ok = not wrong
    graphs = span(r["graphs"] for r in results.values()) if results else "0"
    note = figure_note(
        stored, f"DS and DSS: GIN with BatchNorm, {settings['exact_layers']} layers, width {settings['exact_width']}, "
        f"jumping knowledge by concatenation; one batch of {graphs} sampled graphs; train and eval mode; weights and "
        f"outputs after {settings['exact_steps']} Adam steps",
    )  # fmt: skip
    exact = Table(
        "Float64: difference from the conventional model",
        ["dataset", "policy", "model", "plan", *QUANTITIES.values()],
        [
            [*key.split(" | "), KIND_NAMES[kind], *(_cell(r["float64"][q][kind], TOLERANCE) for q in QUANTITIES)]
            for key, r in results.items()
            for kind in ("ego", "distinct")
        ],
        note,
    )
    rounded = Table(
        "Float32: difference from the conventional model in float64",
        ["dataset", "policy", "model", "plan, in float32", *QUANTITIES.values()],
        [
            [*key.split(" | "), name, *(tiny(r["float32"][q][kind]) for q in QUANTITIES)]
            for key, r in results.items()
            for kind, name in KIND_NAMES.items()
        ],
        note + " Weights without an effect (a bias in front of BatchNorm) walk at random in float32, in every plan.",
    )
    outputs = [r["float32"]["output"] for r in results.values()]
    closer = sum(kinds["distinct"] <= kinds["full"] for kinds in outputs)
    if ok:
        sentences = [
            f"Outputs, gradients, BatchNorm statistics, and weights after {settings['exact_steps']} training steps agree "
            f"with the conventional model in all {len(results)} settings: the largest relative difference in float64 is "
            f"{tiny(largest)}, the limit {tiny(TOLERANCE)}.",
            f"In float32 everything rounds. Distinct rows round less, because they add up fewer numbers: in {closer} of "
            f"{len(results)} settings their outputs are closer to the float64 result than the conventional model's.",
        ]
    else:
        sentences = [
            f"NOT EXACT: {len(wrong)} of {len(results)} settings differ from the conventional model by more than rounding. "
            f"The largest relative difference in float64 is {tiny(largest)}, the limit {tiny(TOLERANCE)}. "
            "Cells marked ✗ are over it.",
            "Wrong: " + "; ".join(key.replace(" | ", ", ") for key in wrong) + ".",
        ]
    rows = _summary(results)
    summary = Table("Float64, worst of both plans and both models",
                    ["dataset", "policy", *QUANTITIES.values()], rows, note, folded=False)  # fmt: skip
    headline = Headline(tiny(largest), "largest relative difference from the conventional model, float64",
                        "exact: nothing but rounding" if ok else "NOT exact", ok)  # fmt: skip
    return Section("exactness", "Exactness", sentences, [], [summary, exact, rounded], [headline], ok)


def _summary(results: dict[str, Any]) -> list[list[str]]:
    """One line per dataset and policy."""
    worst: dict[tuple[str, str], dict[str, float]] = {}
    for key, r in results.items():
        dataset, policy, _ = key.split(" | ")
        line = worst.setdefault((dataset, policy), {})
        for quantity, kinds in r["float64"].items():
            line[quantity] = max(line.get(quantity, 0.0), *kinds.values())
    return [[*key, *(_cell(line[q], TOLERANCE) for q in QUANTITIES if q in line)] for key, line in worst.items()]
