"""What the paper reports beside what this repository's result files hold. Nothing is trained here."""

import json
from pathlib import Path
from typing import Any

from enfa.report.settings import POLICIES

__all__ = ["PAPER", "read_accuracy"]

# percent, mean and standard deviation over ten folds or seeds, as printed in the paper; DS-GNN
PAPER = {
    ("PROTEINS", "node marking"): "76.9 ± 3.9",
    ("PROTEINS", "node deletion"): "77.1 ± 4.6",
    ("PROTEINS", "edge deletion"): "76.8 ± 4.6",
    **{(name, policy): "100" for name in ("EXP", "CEXP") for policy in POLICIES},
    ("ogbg-moltox21", "node marking"): "75.5",
    ("ogbg-molhiv", "node marking"): "76.7",
    ("peptides-func", "node marking"): "57.2",
}


def read_accuracy(folder: Path) -> dict[str, Any]:
    """Key "dataset | policy | model" -> metric, mean, standard deviation, runs, hardware. Empty without a folder."""
    found: dict[str, Any] = {}
    # the shortest name last, which is kept: others have a setting that differs behind it
    for path in sorted(folder.glob("*.json"), key=lambda path: (-len(path.stem), path.stem)):
        try:
            values = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(
                f"{path}: expected a JSON file, got another ({error}); remove it, or name another folder with --results"
            ) from error
        if not isinstance(values, dict) or "runs" not in values:
            continue  # storage and speed are kept there too
        from enfa.training.results.collect import Results  # training is an extra: a report without it is still a report

        results = Results.load(path)
        summary, config = results.summary(), results.config
        if summary is None or not summary.percent:  # errors are no accuracy: docs/results.md has them
            continue
        found[f"{config.dataset} | {config.policy.replace('_', ' ')} | {config.model.upper()}"] = {
            "metric": results.records[0].metric,
            "mean": summary.mean,
            "std": summary.std,
            "runs": summary.runs,
            "notes": list(summary.notes),
            "hardware": sorted({record.hardware for record in results.records}),
        }
    return found
