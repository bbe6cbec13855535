"""What a dataset's bags take on disk: conventional, as ego nets, and as distinct rows (the paper's Table 1)."""

from collections.abc import Sequence
from typing import Any

from torch_geometric.data import Data

from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.storage import stored_bytes
from enfa.edits import Policy
from enfa.edits.check import edits_by
from enfa.graphs import check_graphs
from enfa.graphs.labels import labels
from enfa.nn.bag import compile
from enfa.report.bags.storage import count_bags, stored_bags
from enfa.report.program import program_for

__all__ = ["PARTS", "distinct_bytes", "measure_storage"]

PARTS = ("edges", "pairs", "features", "rest")
_SOURCES = ("x", "marks", "edge_attr", "edge_marks", "start_feature", "start_graph")


def distinct_bytes(compiled: CompiledDataset) -> dict[str, int]:
    """Bytes of the file that ``compiled.save`` writes, by what they are; headers and labels are in ``rest``.

    ``edges``: the keys of the rows that pass messages; ``pairs``: what the pools need, a number for each subgraph, the lists of
    rows in which pools differ, and how often graphs have which rows; ``features``: features and marks, and table 0.
    """
    sizes = stored_bytes(compiled)
    total = sizes.pop("total")
    found = dict.fromkeys(PARTS, 0)
    for name, size in sizes.items():
        group, _, part = name.partition(".")
        if group.startswith("step"):
            op = compiled.program.steps[int(group.removeprefix("step"))].op
            keys = part.startswith("keys.")
            found["features" if op == "start" else "edges" if op == "propagate" and keys else "pairs"] += size
        elif part in _SOURCES:
            found["features"] += size
    found["rest"] = total - sum(found.values())
    return found


def measure_storage(
    graphs: Sequence[Data], policy: Policy, layers: Sequence[int], layout: str = "paper"
) -> list[dict[str, Any]]:
    """One entry for the conventional bags and two for each number of layers: bytes, their parts, percent saved.

    Conventional and ego are counted in ``layout`` (see :mod:`enfa.report.bags.storage`), distinct is the size of the real
    file, for a model that reads edge attributes where there are any. Compiles once, for the most layers.
    """
    checked, most = check_graphs(graphs), max(layers)
    bags = count_bags(checked, edits_by(policy, checked), most + 1)
    y = labels(graphs)
    label_bytes = 0 if y is None else y.numel() * y.element_size()
    conventional = stored_bags(bags, layout, label_bytes=label_bytes)
    whole = sum(conventional.values())

    def entry(kind: str, count: int | None, parts: dict[str, int]) -> dict[str, Any]:
        size = sum(parts.values())
        saved = {} if count is None else {"layers": count, "saved_percent": round(100 * (1 - size / whole), 3)}
        return {"kind": kind, **saved, "bytes": size, "parts": parts}

    compiled = compile(graphs, policy, program_for(graphs, policy, most), progress=False, unshared=None)
    found = [entry("conventional", None, conventional)]
    for count in layers:
        found.append(entry("ego", count, stored_bags(bags, layout, count, label_bytes)))
        found.append(entry("distinct", count, distinct_bytes(compiled.first_layers(count))))
    return found
