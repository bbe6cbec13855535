"""The sections on storage."""

from functools import partial
from typing import Any

from matplotlib.axes import Axes

from enfa.report.pages.figures import COLOURS, grouped
from enfa.report.show.page import Figure, Headline, Panel, Section, Table
from enfa.report.show.words import LEGEND, bytes_text, figure_note, span, times

__all__ = ["show_breakdown", "show_storage"]

LAYOUT = (
    "Conventional and ego are counted as the paper's figures have them, not compressed (int64 edges and attributes of "
    "every subgraph, a pivot hop per subgraph and node); distinct is the size of the file, which is compressed; "
    "conventional, compressed: the same bags by the codec of that file. Counted once, so there is no spread"
)
PART_NAMES = {
    "edges": "edges, or keys of rows",
    "pairs": "pivot hops, or what pools need",
    "features": "features",
    "rest": "the rest",
}
KINDS = {"conventional": "full", "ego": "ego", "distinct": "distinct"}


def _sampled(stored: dict[str, Any]) -> str:
    results = stored["results"].values()
    whole = all(r["graphs"] == r["of"] for r in results)
    return "Whole datasets" if whole else f"Samples of {span(r['graphs'] for r in results)} graphs"


def _panel(results: dict[str, Any], dataset: str) -> Panel:
    values: dict[str, dict[str, dict[int, Any]]] = {kind: {} for kind in KINDS.values()}
    for key, r in results.items():
        name, policy = key.split(" | ")
        if name != dataset:
            continue
        layers = [e["layers"] for e in r["entries"] if e["kind"] == "ego"]
        for e in r["entries"]:
            for layer in [e["layers"]] if "layers" in e else layers:
                values[KINDS[e["kind"]]].setdefault(policy, {})[layer] = (e["bytes"] / 1e6,) * 3
    return Panel(dataset, partial(grouped, values=values, unit="MB"))


def _saved(results: dict[str, Any], kind: str) -> dict[tuple[str, int], float]:
    return {(key, e["layers"]): e["saved_percent"] for key, r in results.items() for e in r["entries"] if e["kind"] == kind}


def _percent(value: float) -> str:
    return f"{value:.1f}%" if value < 99 else f"{value:.2f}%"


def _against_compressed(results: dict[str, Any]) -> dict[tuple[str, int], float]:
    """Bytes of the distinct file for each byte of the compressed conventional bags, where these were counted."""
    return {
        (key, e["layers"]): e["bytes"] / r["compressed_bytes"]
        for key, r in results.items()
        for e in r["entries"]
        if e["kind"] == "distinct" and "compressed_bytes" in r
    }


def _more(ratio: float) -> str:
    """
    >>> _more(0.15), _more(3.2)
    ('−85.0%', '3.20×')
    """
    return f"−{_percent(100 * (1 - ratio))}" if ratio < 1 else times(ratio)


def _fewer(ratios: dict[tuple[str, int], float]) -> str:
    return f"{sum(ratio < 1 for ratio in ratios.values())} of {len(ratios)} settings"


def _compared(ratios: dict[tuple[str, int], float]) -> str:
    """What compression alone does, and what it does not."""
    return (
        "Copies of a graph compress well. By the codec of the distinct file the same conventional bags take as much as "
        f"{times(1 / min(ratios.values()))} its bytes, or as little as 1/{max(ratios.values()):.0f} of them; the "
        f"distinct file is the smaller one in {_fewer(ratios)}, mostly with few layers. Compressed bags have "
        "to be unpacked, and all their rows computed, while batches are cut out of the distinct file as it is."
    )


def show_storage(stored: dict[str, Any]) -> Section:
    results = stored["results"]
    ego, distinct = _saved(results, "ego"), _saved(results, "distinct")
    best = max(distinct, key=lambda k: distinct[k])
    note = figure_note(stored, f"{_sampled(stored)}, L = {span(n for _, n in ego)} layers, no batches", LAYOUT)
    sentences = [
        f"The published method saves {_percent(min(ego.values()))} to {_percent(max(ego.values()))} of the "
        "conventional bags' bytes, as the paper counts them, not compressed (the paper: 29.0% to 84.5%). Of the same bytes "
        f"the file of distinct rows saves {_percent(min(distinct.values()))} to {_percent(max(distinct.values()))}.",
        "The more graphs a dataset has, the more rows they share: a sample saves less than the whole."
        if "Samples" in _sampled(stored)
        else "Rows are shared between all graphs of a dataset.",
    ]
    ratios = _against_compressed(results)
    if ratios:
        sentences.insert(1, _compared(ratios))
    rows = []
    for key, r in results.items():
        start = [*key.split(" | "), f"{r['graphs']:,} of {r['of']:,}"]
        for e in r["entries"]:
            rows.append([*start, e["kind"], str(e.get("layers", "")), bytes_text(e["bytes"]),
                         _percent(e["saved_percent"]) if "layers" in e else ""])  # fmt: skip
        if "compressed_bytes" in r:
            rows.append([*start, "conventional, compressed", "", bytes_text(r["compressed_bytes"]), ""])
    table = Table("Table 1", ["dataset", "policy", "graphs", "plan", "L", "bytes", "saved"], rows, note)
    panels = [_panel(results, name) for name in dict.fromkeys(key.split(" | ")[0] for key in results)]
    dataset, policy = best[0].split(" | ")
    headline = Headline(
        f"−{_percent(distinct[best])}",
        f"storage, at best: the distinct file against bags that are not compressed ({dataset}, {policy}, L = {best[1]})",
        (f"against the same bags compressed: {_more(ratios[best])}, and smaller in {_fewer(ratios)}; " if ratios else "")
        + f"ENFA as published, neither compressed: −{_percent(max(ego.values()))}; the paper: −84.5%",
    )  # fmt: skip
    figure = Figure("storage", "Bytes of the bags", panels, LEGEND, note)
    return Section("storage", "Storage", sentences, [figure], [table], [headline])


def _stacked(axes: Axes, entries: list[dict[str, Any]]) -> None:
    """One bar per plan, its parts one after the other."""
    names = [e["kind"] + (f", L = {e['layers']}" if "layers" in e else "") for e in entries]
    left = [0.0] * len(entries)
    for part in PART_NAMES:
        width = [e["parts"].get(part, 0) / 1e6 for e in entries]
        axes.barh(range(len(entries)), width, left=left, color=COLOURS[part], height=0.72)
        left = [a + b for a, b in zip(left, width)]
    for at, total in enumerate(left):
        axes.text(total, at, f" {bytes_text(1e6 * total)}", va="center", fontsize=7.5)
    axes.set_yticks(range(len(entries)), names, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.set_xlim(0, 1.3 * max(left))
    axes.set_xlabel("MB")


def show_breakdown(stored: dict[str, Any]) -> Section:
    results = stored["results"]
    panels, rows = [], []
    for key, r in results.items():
        entries = sorted(r["entries"], key=lambda e: list(KINDS).index(e["kind"]))
        panels.append(Panel(key.replace(" | ", ", "), partial(_stacked, entries=entries), (3.7, 3.1)))
        for e in entries:
            rows.append([*key.split(" | "), e["kind"], str(e.get("layers", "")),
                         *(bytes_text(e["parts"].get(part, 0)) for part in PART_NAMES), bytes_text(e["bytes"])])  # fmt: skip
    note = figure_note(stored, _sampled(stored), LAYOUT)
    legend = [(name, part) for part, name in PART_NAMES.items()]
    ego = [e for r in results.values() for e in r["entries"] if e["kind"] == "ego"]
    share = max((e["parts"]["pairs"] / e["bytes"] for e in ego), default=0.0)
    sentences = [
        f"ENFA as published trades edges for pivot hops, which make up as much as {share:.0%} of what it stores. "
        "Distinct rows need neither: a row's key replaces the edges of all its copies, and pools are differences."
    ]
    table = Table("Parts", ["dataset", "policy", "plan", "L", *PART_NAMES.values(), "all"], rows, note)
    figure = Figure("breakdown", "What is stored", panels, legend, note)
    return Section("breakdown", "What the bytes are", sentences, [figure], [table])
