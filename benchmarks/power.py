"""What model classes can tell apart on BREC and SR25, without training; docs/power.md shows it.

python benchmarks/power.py            # measures, a few minutes on two cores, and writes the page's table and picture
python benchmarks/power.py --page     # the page's table and picture alone, from results/cpu/power.json
"""

from __future__ import annotations

import json
import os
import re
import time
from pathlib import Path
from typing import Any

from common import RESULTS, ROOT, parser, write
from enfa import power
from enfa.cli.choices import policy_of
from enfa.cli.studies.power import graphs_of
from enfa.expressiveness.picture import draw_power

LAYERS, SHOWN = 10, (3, 6, 10)
# title: policy, model
CASES = {
    "DS, node marking": ("node_marking", "ds"),
    "DSS, node marking": ("node_marking", "dss"),
    "DS, node deletion": ("node_deletion", "ds"),
    "DS, 2-hop ego nets, marked": ("ego_nets:hops=2:mark=true", "ds"),
    "DS, 6-hop ego nets, marked": ("ego_nets:hops=6:mark=true", "ds"),
    "DSS, 6-hop ego nets, marked": ("ego_nets:hops=6:mark=true", "dss"),
    "SUN, node marking": ("node_marking", "sun"),
    "GNN-SSWL+, node marking by distances": ("node_marking:distances=5", "sswl"),
    "I²-GNN, 3 hops": ("neighbor_marking:hops=3", "i2gnn"),
    "I²-GNN, 6 hops": ("neighbor_marking:hops=6", "i2gnn"),
    "DS, edge deletion": ("edge_deletion", "ds"),
}
# title: file of what enfa brec found
TRAINED = {"DSS, node marking": "brec-dss-nm.json", "DS, edge deletion": "brec-ds-ed.json"}
PAGE, PICTURE = ROOT / "docs" / "power.md", ROOT / "docs" / "images" / "power.svg"


def measure(dataset: str, title: str, folder: Path, layers: int, threads: int) -> dict[str, Any]:
    name, graphs, category = graphs_of(dataset, folder)
    policy, model = CASES[title]
    began = time.perf_counter()
    found = power(graphs, policy_of(policy), model, layers, pairs=category is not None, category=category, threads=threads)
    seconds = time.perf_counter() - began
    kept = {key: value for key, value in found.to_dict().items() if key not in ("category", "classes")}
    return {"dataset": name, "case": title, "seconds": round(seconds, 1), **kept}


def table(results: list[dict[str, Any]]) -> str:
    """Pairs of BREC by layers, and by category at six; classes of SR25."""
    head = ["class", *(f"L = {n}" for n in SHOWN), "Basic, Regular, Extension, CFI at L = 6", "SR25 at L = 6", "s"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * len(SHOWN) + "---|--:|--:|"]
    other = {one["case"]: one for one in results if one["dataset"] == "SR25"}
    for one in results:
        if one["dataset"] == "BREC":
            at = {n: one["layers"].index(n) for n in SHOWN}
            parts = ", ".join(str(row[at[6]]) for name, row in one["counts"].items() if name != "all")
            counts = [str(one["counts"]["all"][at[n]]) for n in SHOWN]
            classes = other[one["case"]]["counts"]["all"][at[6]] if one["case"] in other else ""
            lines.append(f"| {' | '.join([one['case'], *counts, parts, str(classes), str(one['seconds'])])} |")
    return "\n".join(lines)


def trained() -> str:
    """What trained networks told apart, beside the bound of their class."""
    lines = ["| class, 6 layers | told apart | bound | Basic, Regular, Extension, CFI | not reliable | beyond the bound |"]
    lines.append("|---|--:|--:|---|--:|--:|")
    for title, name in TRAINED.items():
        pairs = list(json.loads((RESULTS / name).read_text())["pairs"].values())
        apart = [one["apart"] and one["reliable"] for one in pairs]
        of = dict.fromkeys(("Basic", "Regular", "Extension", "CFI"), 0)
        for one, found in zip(pairs, apart):
            of[one["category"]] += found
        counts = ", ".join(map(str, of.values()))
        outside = sum(found and not one["bound"] for one, found in zip(pairs, apart))
        bound, doubtful = (sum(one[key] == value for one in pairs) for key, value in (("bound", True), ("reliable", False)))
        row = [title, sum(apart), bound, counts, doubtful, outside]
        lines.append(f"| {' | '.join(map(str, row))} |")
    return "\n".join(lines)


def show(path: Path) -> None:
    """Write the page's tables and picture."""
    results = json.loads(path.read_text())["results"]
    text = PAGE.read_text()
    for name, new in (("table", table(results)), ("trained", trained())):
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- end -->)", lambda m, new=new: f"{m[1]}\n{new}\n\n{m[2]}", text, flags=re.DOTALL
        )
    PAGE.write_text(text)
    draw_power({one["case"]: one for one in results if one["dataset"] == "BREC"}).savefig(PICTURE, metadata={"Date": None})


def main() -> None:
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "power")
    options.add_argument("--cases", nargs="+", choices=list(CASES), default=list(CASES))
    options.add_argument("--page", action="store_true", help="only the table and picture of docs/power.md, from the results")
    given = options.parse_args()
    out = given.out or RESULTS / "power.json"
    if not given.page:
        folder = Path(given.data or os.environ.get("ENFA_DATA") or ROOT.parent / "shared" / "data")
        layers = 2 if given.quick else LAYERS
        for case in given.cases:
            for dataset in ("SR25",) if given.quick else ("BREC", "SR25"):
                entry = measure(dataset, case, folder, layers, given.threads)
                print(f"{dataset}, {case}: {entry['counts']['all']} in {entry['seconds']} s", flush=True)
                if not given.quick or given.out:
                    write(out, given.threads, [entry], ("dataset", "case"))
    if not given.quick:
        show(out)


if __name__ == "__main__":
    main()
