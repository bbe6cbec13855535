"""How random the order of a sharded dataset is, and whether sorting its graphs pays; docs/scale.md shows it.

    python benchmarks/scale_orders.py --data FOLDER      # counts, so they do not depend on the machine; two minutes
    python benchmarks/scale_orders.py --page             # the page's tables alone, from results/cpu/scale_orders.json

Node marking, 6 layers. The first part asks the order that loaders take (``enfa.batch.shards.reading.order``) for ZINC-full,
whose bytes per graph follow from its rows (results/cpu/scale.json) and the bytes of a row (results/cpu/shards.json, of ``enfa
inspect ZINC --layers 6 --shards --json``). The second sorts ZINC-12k before it is cut into shards, and counts rows.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import enfa
from common import RESULTS, ROOT, data_folder, parser, stamp
from enfa.batch.shards.reading.order import Windows
from enfa.datasets.npz.zinc import load_zinc
from enfa.report.machine import machine
from enfa.report.program import program_for
from enfa.report.studies.sharding import rows_of_graphs, rows_of_shards

RESULT, PAGE = RESULTS / "scale_orders.json", ROOT / "docs" / "scale.md"
GRAPHS, BATCH, LAYERS, EPOCHS = 249_456, 128, 6, 10
MIXING = [(4000, 2), (4000, 8), (1000, 2), (1000, 8), (4000, 0), (1000, 0)]  # graphs of a shard, GiB (0: all of it)
SHARDS, OPEN = (4, 8, 16, 64), 4


def bytes_per_graph() -> float:
    one = json.loads((RESULTS / "shards.json").read_text())["shards"]
    whole = next(e for e in json.loads((RESULTS / "scale.json").read_text())["results"] if e["part"] == "zinc")
    rows = one["sizes"][0]["rows"] / one["sizes"][0]["graphs"]
    return one["bytes_per_graph"] * (whole["rows"] / whole["graphs"]) / rows


def mixing(size: int, gib: int) -> dict[str, Any]:
    """What may meet in a batch: of pairs of graphs drawn at random, and of those in batches."""
    ptr = np.append(np.arange(0, GRAPHS, size), GRAPHS)
    each = bytes_per_graph()
    room = gib * 2**30 / 4 if gib else np.inf  # a window has a quarter of the memory
    windows = Windows(ptr, np.full(len(ptr) - 1, each), room)
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, GRAPHS, (2, 10**6))
    met, one_epoch, moved, last, alike = np.zeros(len(a), bool), [], [], None, []
    for epoch in range(EPOCHS):
        order, ends = windows.order(np.arange(GRAPHS), np.random.default_rng((0, epoch)))
        place = np.empty(GRAPHS, np.int64)
        place[order] = np.arange(GRAPHS)
        same = np.searchsorted(ends, place[a], "right") == np.searchsorted(ends, place[b], "right")
        met |= same
        one_epoch.append(same.mean())
        if last is not None:
            moved.append(np.abs(place - last).mean() / GRAPHS)
        last = place
        shard = windows.shard(order[: GRAPHS // BATCH * BATCH]).reshape(-1, BATCH)
        shard.sort(1)
        for row in shard[:: len(shard) // 100]:
            count = np.unique(row, return_counts=True)[1]
            alike.append((count * (count - 1)).sum() / (BATCH * (BATCH - 1)))
    return {
        "size": size, "gib": gib, "windows": len(ends), "epoch": float(np.mean(one_epoch)), "epochs": float(met.mean()),
        "one_shard": float(np.mean(alike)), "moved": float(np.mean(moved)),
    }  # fmt: skip


def sorted_rows(data: Path) -> list[dict[str, Any]]:
    graphs = load_zinc("ZINC", data / "ZINC.npz").graphs
    policy = enfa.NodeMarking()
    compiled = enfa.compile(graphs, policy, program_for(graphs, policy, LAYERS), progress=False, unshared=None)
    of_graphs, count = rows_of_graphs(compiled), len(compiled)
    nodes = np.array([g.num_nodes for g in graphs])
    rings = np.array([g.num_edges // 2 - g.num_nodes + 1 for g in graphs])
    kinds = np.stack([np.bincount(g.x.view(-1).numpy(), minlength=28) for g in graphs])
    orders = {
        "as it is": np.arange(count),
        "by number of nodes": np.argsort(nodes, kind="stable"),
        "by number of nodes, then of rings": np.lexsort((rings, nodes)),
        "by numbers of atoms of each kind, rare ones first": np.lexsort(kinds.T),
    }
    whole = rows_of_shards(of_graphs, np.arange(count), np.array([count]))
    found = []
    for title, order in orders.items():
        more = {}
        for shards in SHARDS:
            ends = np.arange(1, shards + 1) * count // shards
            more[shards] = rows_of_shards(of_graphs, order, ends) / whole - 1
        found.append({"order": title, "more": more, "batch_rows": _batch_rows(of_graphs, order)})
    return found


def _batch_rows(of_graphs: Any, order: np.ndarray) -> float:
    """Rows of random batches of windows of four shards of sixteen."""
    rng, per, found = np.random.default_rng(0), len(order) // 16, []
    for _ in range(16):
        shards = rng.permutation(16)[:OPEN]
        batch = np.concatenate([np.full(per, s) * per + np.arange(per) for s in shards])
        batch = np.sort(rng.permutation(batch)[:BATCH])
        found.append(rows_of_shards(of_graphs, order[batch], np.searchsorted(batch, (np.arange(16) + 1) * per)))
    return float(np.mean(found))


def mixing_table(found: dict[str, Any]) -> str:
    head = ["shards of", "memory", "windows", "can share a batch in an epoch", f"in one of {EPOCHS} epochs"]
    head += ["of a batch's pairs, from one shard", "graphs move by"]
    lines = [f"| {' | '.join(head)} |", "|" + "--:|" * 7]
    for one in found["mixing"]:
        shares = [f"{100 * one[k]:.0f}%" for k in ("epoch", "epochs")] + [f"{100 * one['one_shard']:.2g}%"]
        cells = [f"{one['size']:,}", f"{one['gib']} GiB" if one["gib"] else "all", str(one["windows"]), *shares]
        cells.append(f"{one['moved']:.2f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def sorted_table(found: dict[str, Any]) -> str:
    head = ["order", *(f"{n} shards" for n in SHARDS), f"rows of a batch, {OPEN} of 16 shards open"]
    lines = [f"| {' | '.join(head)} |", "|---|" + "--:|" * (len(SHARDS) + 1)]
    for one in found["sorted"]:
        cells = [one["order"], *(f"{100 * one['more'][str(n)]:.0f}%" for n in SHARDS), f"{one['batch_rows']:,.0f}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def sizes_table(found: dict[str, Any]) -> str:
    """Of ``enfa inspect ZINC --layers 6 --shards``."""
    lines = ["| shards | graphs in each | rows | more by | rows of a random batch of 128 | more by |", "|" + "--:|" * 6]
    for one in found["shards"]["sizes"]:
        more = [f"{100 * one[k]:.2g}%" if one["shards"] > 1 else "" for k in ("more_rows", "more_batch_rows")]
        rows = [f"{one['rows'] / 1e6:.1f} M", more[0], f"{one['batch_rows']:,.0f}", more[1]]
        lines.append(f"| {' | '.join([str(one['shards']), format(one['graphs'], ','), *rows])} |")
    return "\n".join(lines)


def with_figures(page: str) -> str:
    found, sizes = json.loads(RESULT.read_text()), json.loads((RESULTS / "shards.json").read_text())
    tables: dict[str, Callable[[], str]] = {
        "mixing": lambda: mixing_table(found), "sorted": lambda: sorted_table(found), "sizes": lambda: sizes_table(sizes),
    }  # fmt: skip
    for name, table in tables.items():
        begin, end = f"<!-- {name}: benchmarks/scale_orders.py -->\n", "\n<!-- end -->"
        before, rest = page.split(begin)
        page = before + begin + table() + end + rest.split(end, 1)[1]
    return page


def main() -> None:
    options = parser(__doc__.splitlines()[0] if __doc__ else None, "scale_orders")
    options.add_argument("--page", action="store_true", help="only write the page's tables")
    args = options.parse_args()
    if not args.page:
        found: dict[str, Any] = {"bytes_per_graph": bytes_per_graph()}
        found |= {"mixing": [mixing(*one) for one in MIXING], "sorted": sorted_rows(data_folder(args.data))}
        RESULT.write_text(json.dumps({"machine": machine(), **stamp(), **found}, indent=1) + "\n")
    PAGE.write_text(with_figures(PAGE.read_text()))


if __name__ == "__main__":
    main()
