"""The section on training time and memory."""

from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

from matplotlib.axes import Axes

from enfa.report.measure.time import Case
from enfa.report.pages.figures import COLOURS, grouped, log_axis
from enfa.report.show.page import Figure, Headline, Panel, Section, Table
from enfa.report.show.words import KIND_NAMES, LEGEND, bytes_text, figure_note, span, times

__all__ = ["show_time"]

Results = dict[Case, dict[str, Any]]
Value = tuple[float, float, float]
CONVS = {"gin": "GIN", "graphconv": "GraphConv", "gcn": "GCN"}


def _cases(stored: dict[str, Any]) -> Results:
    found = {}
    for key, result in stored["results"].items():
        dataset, policy, conv, context, layers, method = key.split(" | ")
        found[Case(dataset, policy, conv, context == "True", int(layers), method)] = result
    return found


def _plain(case: Case) -> bool:
    """The setting of the main figures."""
    return case.conv == "gin" and not case.context and case.method == "same batch"


def _speedups(results: Results, kind: str, what: str = "ms") -> dict[Case, float]:
    """Conventional over ``kind``, where both could be measured."""
    return {
        case: r["plans"]["full"][what] / r["plans"][kind][what]
        for case, r in results.items()
        if what in r["plans"]["full"] and what in r["plans"][kind]
    }


def _panels(results: Results, unit: str, value: Callable[[dict[str, Any]], Value | None]) -> list[Panel]:
    """One panel per dataset: policies side by side, L = 2..5 within each."""
    panels = []
    for dataset in dict.fromkeys(case.dataset for case in results):
        mine = {c: r for c, r in results.items() if c.dataset == dataset}
        values: dict[str, dict[str, dict[int, Any]]] = {kind: {} for kind in KIND_NAMES}
        for case, r in mine.items():
            for kind in KIND_NAMES:
                values[kind].setdefault(case.policy, {})[case.layers] = value(r["plans"][kind])
        batch = span(r["plans"]["full"]["batch"] for r in mine.values())
        panels.append(Panel(f"{dataset} · batch {batch}", partial(grouped, values=values, unit=unit)))
    return panels


def _ms(plan: dict[str, Any]) -> Value | None:
    return (plan["ms"], plan["ms_low"], plan["ms_high"]) if "ms" in plan else None


def _memory(plan: dict[str, Any]) -> Value | None:
    return (plan["peak_bytes"] / 1e6,) * 3 if "peak_bytes" in plan else None


def _dots(axes: Axes, results: Results) -> None:
    """Speed-ups over the conventional model: one line per model and policy, one dot per plan and L."""
    names = list(dict.fromkeys((c.conv, c.context, c.policy) for c in results))
    for kind, marker in (("ego", "^"), ("distinct", "o")):
        speed = _speedups(results, kind)
        for case, value in speed.items():
            at = names.index((case.conv, case.context, case.policy))
            axes.plot(value, at, marker=marker, color=COLOURS[kind], ms=5, lw=0)
    axes.axvline(1, color=COLOURS["full"], lw=1.2, ls=(0, (4, 3)))
    log_axis(axes.xaxis, axes.set_xscale, axes.get_xlim, axes.set_xlim, "×")
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", visible=True)
    axes.set_yticks(range(len(names)), [f"{CONVS[v]}{' + context' if c else ''}, {p}" for v, c, p in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("times faster")


def _spread(results: Results) -> str:
    repeats = span(p["repeats"] for r in results.values() for p in r["plans"].values() if "repeats" in p)
    return f"Points: median of {repeats} steps, plans taken in turn; bars: quartiles"


def _table(title: str, results: Results, note: str) -> Table:
    header = ["dataset", "policy", "model", "L", "plan", "batch", "rows, last layer", "ms per step", "quartiles",
              "s per epoch", "peak memory", "faster"]  # fmt: skip
    rows = []
    for case, r in results.items():
        model = CONVS[case.conv] + (" + context" if case.context else "")
        for kind, name in KIND_NAMES.items():
            p = r["plans"][kind]
            start = [case.dataset, case.policy, model, str(case.layers), name, str(p["batch"]), f"{p['rows'][-1]:,}"]
            if "ms" not in p:
                need = p["does_not_fit"]
                text = f"needs {bytes_text(need['needs_bytes'])} of {bytes_text(need['limit_bytes'])}"
                rows.append([*start, "does not fit", "", "", text, ""])
                continue
            what = "epoch_s" if case.method == "same data" else "ms"
            base = r["plans"]["full"].get(what)
            rows.append([
                *start, f"{p['ms']:,.1f}", f"{p['ms_low']:,.1f} to {p['ms_high']:,.1f}", f"{p['epoch_s']:,.1f}",
                bytes_text(p["peak_bytes"]), times(base / p[what]) if base and kind != "full" else "",
            ])  # fmt: skip
    return Table(title, header, rows, note)


def _headlines(plain: Results, same_data: Results) -> list[Headline]:
    found = []
    fast = _speedups(plain, "distinct")
    if fast:
        best = max(fast, key=lambda c: fast[c])
        where = f"{best.dataset}, {best.policy}, L = {best.layers}"
        text = f"faster training step, at best ({where}); median of {len(fast)} settings {times(median(fast.values()))}"
        batch = span(plain[case]["plans"]["full"]["batch"] for case in fast)
        beside = f"distinct rows against conventional, both on the same batch of {batch} sampled graphs: more graphs share more"
        found.append(Headline(times(fast[best]), text, beside))
    ego = _speedups(same_data, "ego", "epoch_s")
    if ego:
        best = max(ego, key=lambda c: ego[c])
        text = f"faster epoch, at best, with ENFA as published, in larger batches ({best.dataset}, {best.policy})"
        beside = "by the paper's method: as many graphs in a batch as take no more data than conventional; there up to 1.66×"
        found.append(Headline(times(ego[best]), text, beside))
    return found


def show_time(stored: dict[str, Any]) -> Section:
    results = _cases(stored)
    plain = {c: r for c, r in results.items() if _plain(c)}
    same_data = {c: r for c, r in results.items() if c.method == "same data"}
    variants = {c: r for c, r in results.items() if c.method == "same batch" and not _plain(c)}
    width = "width " + span(r["width"] for r in results.values())
    on_gpu = stored["settings"]["device"] == "cuda"
    epoch = "An epoch is the number of batches times " + (
        "the step: other processes make the batches meanwhile." if on_gpu else "(step + making the batch)."
    )
    sentences = [
        "One training step is forward, backward and Adam on one batch. All three plans run the same model with the "
        "same weights and give the same gradients.",
    ]
    if on_gpu:
        sentences.append(
            "On the GPU the steps of all three are captured as CUDA graphs, as enfa train does, so that launching "
            "kernels costs none of them anything."
        )
    fast, published = _speedups(plain, "distinct"), _speedups(plain, "ego")
    if fast and published:
        sentences.append(
            f"At the same batch size the published method is {times(min(published.values()))} to "
            f"{times(max(published.values()))} as fast as the conventional model, distinct rows "
            f"{times(min(fast.values()))} to {times(max(fast.values()))}."
        )
    lost = sum("does_not_fit" in r["plans"]["full"] for r in results.values())
    if lost:
        sentences.append(f"In {lost} settings the conventional bags do not fit into memory; the figures say where.")
    figures, tables = [], []
    if plain:
        note = partial(figure_note, stored, f"GIN, {width}, no context")
        figures.append(Figure("time", "Milliseconds per training step", _panels(plain, "ms per step", _ms), LEGEND,
                              note(_spread(plain), "Under each policy: L = 2 to 5 layers")))  # fmt: skip
        figures.append(
            Figure("memory", "Peak memory of a step", _panels(plain, "MB", _memory), LEGEND,
                   note("Most bytes of tensors alive at once in one step; one measurement, it does not vary")),
        )  # fmt: skip
        tables.append(_table("GIN at the same batch size", plain, epoch))
    if same_data:
        panels = _panels(same_data, "s per epoch", lambda p: (p["epoch_s"],) * 3 if "epoch_s" in p else None)
        batches = (
            "ENFA takes the largest batch whose data is no larger than the conventional one's, and at least as many graphs"
        )
        figures.append(Figure("epoch", "Seconds per epoch by the paper's method", panels, LEGEND,
                              figure_note(stored, f"GIN, {width}. {batches}", epoch.rstrip("."))))  # fmt: skip
        tables.append(_table("The paper's method", same_data, f"{batches}. “Faster” compares epochs. {epoch}"))
    if variants:
        panels = [
            Panel(d, partial(_dots, results={c: r for c, r in variants.items() if c.dataset == d}), (3.7, 3.2))
            for d in dict.fromkeys(c.dataset for c in variants)
        ]
        what = f"{width}, L = {span(c.layers for c in variants)}; context: H + Enc(sum of H over the bag)"
        figures.append(
            Figure("variants", "Other models: how much faster a step is", panels, LEGEND,
                   figure_note(stored, what, _spread(variants)))
        )  # fmt: skip
        tables.append(_table("Other convs, and cross-subgraph message passing", variants, epoch))
    return Section("time", "Training time and memory", sentences, figures, tables, _headlines(plain, same_data))
