"""The section on accuracy."""

from typing import Any

from enfa.report.measure.accuracy import PAPER
from enfa.report.show.page import Headline, Section, Table

__all__ = ["show_accuracy"]

METRICS = {"accuracy": "accuracy", "rocauc": "ROC-AUC", "ap": "average precision"}


def show_accuracy(stored: dict[str, Any]) -> Section:
    results = {tuple(key.split(" | ")): r for key, r in stored["results"].get("files", {}).items()}
    keys = [(*key, "DS") for key in PAPER]
    keys += sorted(key for key in results if key not in keys)
    rows = []
    for dataset, policy, model in keys:
        r = results.get((dataset, policy, model))
        paper = PAPER.get((dataset, policy), "") if model == "DS" else ""
        if r is None:
            rows.append([dataset, policy, model, "", paper, "no run yet", ""])
            continue
        ours = f"{r['mean']:.1f} ± {r['std']:.1f}" if r["runs"] > 1 else f"{r['mean']:.1f}"
        rows.append([dataset, policy, model, METRICS.get(r["metric"], r["metric"]), paper, ours, str(r["runs"])])
    header = ["dataset", "policy", "model", "metric", "paper", "ours", "runs"]
    sentences = [
        "All plans compute the same, so accuracy, here in percent, checks data, splits and training.",
    ]
    headlines = []
    if results:
        sentences.append("Ours are the files under results/ of this repository; docs/results.md tells the protocol.")
        mine = results.get(("PROTEINS", "node marking", "DS"))
        if mine:
            what = f"PROTEINS accuracy, node marking, {_folds(mine['runs'])}"
            headlines.append(Headline(f"{mine['mean']:.1f}%", what, "the paper: 76.9 ± 3.9"))
    else:
        sentences.append("This report found no files under results/; enfa sweep writes them.")
    note = "Chosen epochs, and hardware: results/accuracy.json beside this report." if results else ""
    table = Table("The paper's accuracy beside ours", header, rows, note, folded=False)
    return Section("accuracy", "Accuracy", sentences, [], [table], headlines)


def _folds(runs: int) -> str:
    """A tile's number may be of a sweep that has only begun, or of several seeds.

    >>> _folds(10), _folds(1), _folds(20)
    ('ten folds', '1 of ten folds', '20 runs of ten folds')
    """
    if runs == 10:
        return "ten folds"
    return f"{runs} of ten folds" if runs < 10 else f"{runs} runs of ten folds"
