"""Q1 and Q2: bytes of the bags, conventional, ego and distinct, and what they consist of."""

from collections.abc import Iterator
from typing import Any

from enfa.datasets import Benchmark
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.report.bags.compressed import compressed_bags
from enfa.report.data import Source
from enfa.report.measure.store import Store
from enfa.report.settings import POLICIES, Settings

__all__ = ["measure_breakdown", "measure_table"]

BREAKDOWN: dict[str, tuple[str, ...]] = {"PROTEINS": ("node marking", "edge deletion")}  # the paper's Q2


def _one(data: Benchmark, policy: str, settings: Settings) -> dict[str, Any]:
    from enfa.report.studies.storage import measure_storage  # compiles: kept out of the command line's start

    chosen, rule = settings.sample(data, settings.storage_graphs), POLICIES[policy]()
    graphs = [data.graphs[i] for i in sorted(chosen)]
    checked = check_graphs(graphs)
    return {
        "graphs": len(graphs),
        "of": len(data.graphs),
        "entries": measure_storage(graphs, rule, settings.layers),
        "compressed_bytes": compressed_bags(checked, edits_by(rule, checked)),
    }


def measure_table(source: Source, settings: Settings, store: Store) -> Iterator[str]:
    """Fill the section "storage"; yields each key when it is done."""
    for dataset in settings.datasets:
        for policy in POLICIES:
            key = f"{dataset} | {policy}"
            store.compute("storage", key, lambda d=dataset, p=policy: _one(source(d), p, settings))  # type: ignore[misc]
            yield key


def measure_breakdown(source: Source, settings: Settings, store: Store) -> Iterator[str]:
    """Fill the section "breakdown"; what the section "storage" has measured already is taken from there."""
    wanted = {d: p for d, p in BREAKDOWN.items() if d in settings.datasets}
    for dataset, policies in (wanted or {settings.datasets[0]: tuple(POLICIES)}).items():
        for policy in policies:
            key = f"{dataset} | {policy}"
            known = store.section("storage").get(key)
            store.compute("breakdown", key, lambda d=dataset, p=policy, k=known: k or _one(source(d), p, settings))  # type: ignore[misc]
            yield key
