"""What a dataset's bags take on disk: conventional, as ego nets, and as distinct rows (the paper's Table 1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch_geometric.data import Data

from enfa.batch.compile import compile
from enfa.batch.dataset import CompiledDataset
from enfa.batch.storage import stored_bytes
from enfa.edits import Policy
from enfa.graphs import check_graphs
from enfa.graphs.labels import labels
from enfa.plan.make import edits_of
from enfa.plan.spec import Spec
from enfa.plan.storage import count_bags, stored_bags

__all__ = ["PARTS", "distinct_bytes", "measure_storage"]

PARTS = ("edges", "pairs", "features", "rest")
_FEATURES = ("x", "marks", "edge_attr", "edge_marks", "start_feature", "start_graph")


def distinct_bytes(compiled: CompiledDataset) -> dict[str, int]:
    """Bytes of the file that ``compiled.save`` writes, by what they are; headers and labels are in ``rest``.

    ``edges``: the keys of all rows; ``pairs``: what the readout needs, a number for each node and subgraph, and the
    lists of rows in which pools differ; ``features``: features and marks, and table 0.
    """
    sizes = stored_bytes(compiled)
    total = sizes.pop("total")
    found = dict.fromkeys(PARTS, 0)
    for name, size in sizes.items():
        group, _, part = name.partition(".")
        if group.startswith("layer"):
            found["edges"] += size
        elif group in ("base_ptr", "base_row", "sub_delta", "deltas", "sub_root", "nodes", "node_sum"):
            found["pairs"] += size
        elif group == "start" or part in _FEATURES:
            found["features"] += size
    found["rest"] = total - sum(found.values())
    return found


def measure_storage(
    graphs: Sequence[Data], policy: Policy, layers: Sequence[int], layout: str = "paper", progress: bool = False
) -> list[dict[str, Any]]:
    """One entry for the conventional bags and two for each number of layers: bytes, their parts, percent saved.

    Conventional and ego are counted in ``layout`` (see :mod:`enfa.plan.storage`), distinct is the size of the real
    file, for a model that reads edge attributes where there are any. Compiles once, for the most layers.
    """
    checked, most = check_graphs(graphs), max(layers)
    spec = Spec(most, edge_attr=checked.edge_attr is not None)
    bags = count_bags(checked, edits_of(checked, policy, spec), most + 1)
    y = labels(graphs)
    label_bytes = 0 if y is None else y.numel() * y.element_size()
    conventional = stored_bags(bags, layout, label_bytes=label_bytes)
    whole = sum(conventional.values())

    def entry(kind: str, count: int | None, parts: dict[str, int]) -> dict[str, Any]:
        size = sum(parts.values())
        saved = {} if count is None else {"layers": count, "saved_percent": round(100 * (1 - size / whole), 3)}
        return {"kind": kind, **saved, "bytes": size, "parts": parts}

    compiled = compile(graphs, policy, spec, progress=progress)
    found = [entry("conventional", None, conventional)]
    for count in layers:
        found.append(entry("ego", count, stored_bags(bags, layout, count, label_bytes)))
        found.append(entry("distinct", count, distinct_bytes(compiled.first_layers(count))))
    return found
