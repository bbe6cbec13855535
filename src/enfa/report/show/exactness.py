"""The section on exactness: green or red."""

from collections import Counter
from typing import Any

from enfa.report.measure.exactness import QUANTITIES, RENUMBERINGS, TOLERANCE, is_exact, limit_of
from enfa.report.show.page import Headline, Section, Table
from enfa.report.show.words import KIND_NAMES, figure_note, span, tiny

__all__ = ["show_exactness"]


PLANS = {**KIND_NAMES, "renumbered": "conventional, nodes renumbered"}


def _cell(kinds: dict[str, float], kind: str) -> str:
    return ("✗ " if kind != "renumbered" and not kinds[kind] <= limit_of(kinds) else "") + tiny(kinds[kind])


def _about(over: dict[str, list[str]]) -> str:
    """How the promise was kept: as it stands, or where only against the conventional model's own rounding."""
    if not over:
        return f"All are within the promised {tiny(TOLERANCE)}."
    return (
        f"Where the promised {tiny(TOLERANCE)} is exceeded, the limit is ten times what the conventional model differs from "
        f"itself when its nodes are numbered in another order (the largest of {RENUMBERINGS} renumberings)."
    )


def _verdict(results: dict[str, Any], over: dict[str, list[str]], steps: int) -> str:
    """What the box says: in how many settings the promise held as it stands, and what it means where it did not."""
    what = f"Outputs, gradients, BatchNorm statistics, and weights after {steps} training steps agree with conventional ones"
    if not over:
        return f"{what} in all {len(results)} settings, to {tiny(TOLERANCE)}. Nothing but rounding is left."
    names = " and ".join(dict.fromkeys(name for some in over.values() for name in some))
    plan, itself = 0.0, 0.0
    for key in over:
        for kinds in results[key]["float64"].values():
            if max(kinds["ego"], kinds["distinct"]) > TOLERANCE:
                plan, itself = max(plan, kinds["ego"], kinds["distinct"]), max(itself, kinds["renumbered"])
    listed, others = "; ".join(key.replace(" | ", ", ") for key in over), "one" if len(over) == 1 else len(over)
    if len(over) > 4:  # the tables name them
        counts = Counter(key.split(" | ")[0] for key in over)
        listed = ", ".join(f"{count} of {dataset}" for dataset, count in counts.items())
    return (
        f"{what} to {tiny(TOLERANCE)} in {len(results) - len(over)} of {len(results)} settings. In the other {others} "
        f"({listed}) only the {names} differ by more, by {tiny(plan)} at most. There training magnifies rounding, as on "
        "graphs so symmetric that gradients cancel: the conventional model, its nodes numbered in another order, differs from "
        f"itself by as much as {tiny(itself)}. That is no error of a plan: in these settings fewer digits of trained weights "
        "mean anything, in conventional code too."
    )


def show_exactness(stored: dict[str, Any]) -> Section:
    results = stored["results"]
    settings = stored["settings"]
    wrong = [key for key, r in results.items() if not is_exact(r)]
    largest = {q: max(r["float64"][q][kind] for r in results.values() for kind in ("ego", "distinct")) for q in QUANTITIES}
    ok = not wrong
    graphs = span(r["graphs"] for r in results.values()) if results else "0"
    note = figure_note(
        stored, f"DS and DSS: GIN with BatchNorm, {settings['exact_layers']} layers, width {settings['exact_width']}, "
        f"jumping knowledge by concatenation; one batch of {graphs} sampled graphs; train and eval mode; weights and "
        f"outputs after {settings['exact_steps']} Adam steps",
    )  # fmt: skip
    exact = Table(
        "Float64: relative difference from the conventional model",
        ["dataset", "policy", "model", "plan", *QUANTITIES.values()],
        [
            [*key.split(" | "), PLANS[kind], *(_cell(r["float64"][q], kind) for q in QUANTITIES)]
            for key, r in results.items()
            for kind in ("ego", "distinct", "renumbered")
        ],
        note,
    )
    rounded = Table(
        "Float32: relative difference from the conventional model in float64",
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
    over = {
        key: [QUANTITIES[q] for q, kinds in r["float64"].items() if max(kinds["ego"], kinds["distinct"]) > TOLERANCE]
        for key, r in results.items()
    }
    over = {key: names for key, names in over.items() if names}
    list_of = ", ".join(f"{name} {tiny(largest[q])}" for q, name in QUANTITIES.items())
    if ok:
        sentences = [
            _verdict(results, over, settings["exact_steps"]),
            f"Largest relative differences in float64: {list_of}. " + _about(over),
            "In float32 everything rounds, the conventional model too: in "
            f"{closer} of {len(results)} settings the outputs of distinct rows are at least as close to the float64 "
            "result as its own.",
        ]
    else:
        sentences = [
            f"NOT EXACT: {len(wrong)} of {len(results)} settings differ from the conventional model by more than "
            "rounding. Cells marked ✗ are over the limit.",
            f"Largest relative differences in float64: {list_of}; the limit is {tiny(TOLERANCE)}.",
            "Wrong: " + "; ".join(key.replace(" | ", ", ") for key in wrong) + ".",
        ]
    rows = _summary(results)
    summary = Table("Float64, worst of both plans and both models",
                    ["dataset", "policy", *QUANTITIES.values()], rows, note, folded=False)  # fmt: skip
    headline = Headline(
        tiny(largest["output"]), "largest relative difference of any output from the conventional model, float64",
        f"exact to rounding in all {len(results)} settings" if ok else "NOT exact", ok,
    )  # fmt: skip
    return Section("exactness", "Exactness", sentences, [], [summary, exact, rounded], [headline], ok)


def _summary(results: dict[str, Any]) -> list[list[str]]:
    """One line per dataset and policy: the worst of both plans and both models, with ✗ if any is over its limit."""
    worst: dict[tuple[str, str], dict[str, tuple[bool, float]]] = {}
    for key, r in results.items():
        dataset, policy, _ = key.split(" | ")
        line = worst.setdefault((dataset, policy), {})
        for quantity, kinds in r["float64"].items():
            value = max(kinds["ego"], kinds["distinct"])
            wrong, before = line.get(quantity, (False, 0.0))
            line[quantity] = wrong or not value <= limit_of(kinds), max(before, value)
    return [[*key, *(("✗ " if line[q][0] else "") + tiny(line[q][1]) for q in QUANTITIES)] for key, line in worst.items()]
