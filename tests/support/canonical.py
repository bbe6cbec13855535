"""What every row is computed from, as nested tuples: written in plain Python, twice.

:func:`written_out` starts from explicit subgraphs, :func:`of_plan` from a plan's arrays. Both number their tuples in
one dictionary, where Python compares them exactly; so two rows get one number if and only if they are the same row.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import torch
from subgraphs import bag
from torch_geometric.data import Data

import enfa
from enfa.plan.derive import readouts
from enfa.plan.table import Links


class Numbers:
    """Tuple -> number."""

    def __init__(self) -> None:
        self.of: dict[Any, int] = {}

    def __call__(self, *key: Any) -> int:
        return self.of.setdefault(key, len(self.of))

    def layer(self, own: int, incoming: list[tuple[int, Any]]) -> int:
        return self("layer", own, tuple(sorted(incoming, key=repr)))

    def context(self, counts: Counter, degree: int | None) -> int:
        return self("context", degree, tuple(sorted(counts.items())))


@dataclass
class Tables:
    """Per layer: how many (subgraph, node) pairs (or nodes, for contexts) each number stands for; base rows add 0."""

    conv: list[Counter] = field(default_factory=list)
    table: list[Counter] = field(default_factory=list)
    context: list[Counter] = field(default_factory=list)
    encoded: list[Counter] = field(default_factory=list)
    base_only: list[set[int]] = field(default_factory=list)  # numbers of base rows, tables 1..L
    bags: list[list[Counter]] = field(default_factory=list)  # per layer, per subgraph: the multiset it pools


def _attr(graph: Data, spec: enfa.Spec, edge: int) -> Any:
    return tuple(graph.edge_attr[edge].tolist()) if spec.edge_attr else None


def _incoming(graph: Data, spec: enfa.Spec, rows: list[int]) -> list[list[tuple[int, Any]]]:
    found: list[list[tuple[int, Any]]] = [[] for _ in range(graph.num_nodes)]
    for e, (u, v) in enumerate(graph.edge_index.T.tolist()):
        found[v].append((rows[u], _attr(graph, spec, e)))
    return found


def _degrees(graph: Data) -> list[int]:
    return torch.bincount(graph.edge_index[1], minlength=graph.num_nodes).tolist()


def _start(number: Numbers, graph: Data, mark: torch.Tensor, spec: enfa.Spec, position: int) -> list[int]:
    degrees, shared = _degrees(graph), position if spec.share == "graph" else None
    return [
        number("start", tuple(x), tuple(m), d if spec.degrees else None, shared)
        for x, m, d in zip(graph.x.tolist(), mark.tolist(), degrees)
    ]


def written_out(number: Numbers, graphs: list[Data], policy: str, spec: enfa.Spec) -> Tables:
    """All rows of all subgraphs, one by one."""
    bags = [bag(graph, policy) for graph in graphs]
    base = [_start(number, g, torch.zeros(g.num_nodes, 1), spec, p) for p, g in enumerate(graphs)]
    rows = [[_start(number, s, s.mark, spec, p) for s in each] for p, each in enumerate(bags)]
    found = Tables()
    for _ in range(spec.num_layers):
        before = rows
        new_base = [
            [number.layer(o, i) for o, i in zip(b, _incoming(g, spec, b))] for g, b in zip(graphs, base)
        ]
        rows = [
            [[number.layer(o, i) for o, i in zip(r, _incoming(s, spec, r))] for s, r in zip(each, of_graph)]
            for each, of_graph in zip(bags, rows)
        ]
        found.conv.append(_count(rows, new_base))
        if spec.context is not None:
            contexts, encoded = Counter[int](), Counter[int]()
            for p, graph in enumerate(graphs):
                seen = _contexts(number, graph, bags[p], (before if spec.context == "input" else rows)[p], spec)
                contexts.update(seen)
                if spec.context_encoder:
                    seen = [number.layer(o, i) for o, i in zip(seen, _incoming(graph, spec, seen))]
                encoded.update(seen)
                new_base[p] = [number("mix", r, c) for r, c in zip(new_base[p], seen)]
                rows[p] = [
                    [number("mix", r, seen[v]) for r, v in zip(of_sub, one.node.tolist())]
                    for one, of_sub in zip(bags[p], rows[p])
                ]
            found.context.append(contexts)
            found.encoded.append(encoded)
        base = new_base
        found.table.append(_count(rows, base))
        found.base_only.append({r for b in base for r in b})
        found.bags.append([Counter(of_sub) for of_graph in rows for of_sub in of_graph])
    return found


def _contexts(number: Numbers, graph: Data, each: list[Data], rows: list[list[int]], spec: enfa.Spec) -> list[int]:
    counts: list[Counter] = [Counter() for _ in range(graph.num_nodes)]
    for one, of_sub in zip(each, rows):
        for v, r in zip(one.node.tolist(), of_sub):
            counts[v][r] += 1
    read = spec.degrees and spec.context_encoder
    return [number.context(c, d if read else None) for c, d in zip(counts, _degrees(graph))]


def _count(rows: list[list[list[int]]], base: list[list[int]]) -> Counter:
    found = Counter(r for of_graph in rows for of_sub in of_graph for r in of_sub)
    for of_graph in base:
        for r in of_graph:
            found[r] += 0
    return found


def of_plan(number: Numbers, plan: enfa.Plan) -> tuple[Tables, dict[str, list[list[int]]]]:
    """The same from a plan, and the number of every row of every table."""
    spec, found = plan.spec, Tables()
    tables: dict[str, list[list[int]]] = {"conv": [], "table": [], "context": [], "encoded": []}
    kinds = [None] * len(plan.edge_mark)
    if plan.edge_attr is not None:
        kinds = [tuple(a) for a in plan.edge_attr.tolist()]
    blank = [None] * len(plan.feature)
    rows = [
        number("start", tuple(plan.x[f].tolist()), tuple(plan.marks[m].tolist()), d, g)
        for f, m, d, g in zip(
            plan.feature.tolist(), plan.mark.tolist(), blank if plan.degree is None else plan.degree.tolist(),
            blank if plan.graph is None else plan.graph.tolist(),
        )
    ]  # fmt: skip
    for layer in plan.layers:
        before, conv = rows, _over(number, layer.links, rows, kinds)
        tables["conv"].append(conv)
        found.conv.append(_weighted(conv, layer.copies.tolist()))
        rows = conv if layer.source is None else [conv[s] for s in layer.source.tolist()]
        if layer.context is not None and layer.context_row is not None:
            sums, links = layer.context.sums, layer.context.links
            read = before if spec.context == "input" else conv
            degree: dict[int, int] = {}
            if spec.degrees and links is not None:
                degree = dict(zip(links.self_row.tolist(), links.in_ptr.diff().tolist()))
            entries, ptr = list(zip(sums.row.tolist(), sums.count.tolist())), sums.ptr.tolist()
            seen = []
            for c in range(len(ptr) - 1):
                counts: Counter = Counter()
                for r, k in entries[ptr[c] : ptr[c + 1]]:
                    counts[read[r]] += k
                seen.append(number.context(counts, degree.get(c)))
            tables["context"].append(seen)
            encoded = seen if links is None else _over(number, links, seen, kinds)
            tables["encoded"].append(encoded)
            found.encoded.append(_weighted(encoded, layer.context.copies.tolist()))
            rows = [number("mix", r, encoded[c]) for r, c in zip(rows, layer.context_row.tolist())]
        tables["table"].append(rows)
    for readout, of_table in zip(readouts(plan), tables["table"]):
        of_graph: list[Counter] = [Counter() for _ in range(plan.num_graphs)]
        if readout.base_row is not None:
            for g, r in zip(readout.base_graph.tolist(), readout.base_row.tolist()):
                of_graph[g][of_table[r]] += 1
        ptr, bags = readout.delta.ptr.tolist(), []
        entries = list(zip(readout.delta.row.tolist(), readout.delta.count.tolist()))
        for d, g in zip(readout.sub_delta.tolist(), readout.sub_graph.tolist()):
            one = Counter(of_graph[g])
            for r, k in entries[ptr[d] : ptr[d + 1]]:
                one[of_table[r]] += k
            bags.append(one)
        found.bags.append(bags)
    return found, tables


def _over(number: Numbers, links: Links, rows: list[int], kinds: list[Any]) -> list[int]:
    ptr = links.in_ptr.tolist()
    entries = [(rows[r], kinds[e]) for r, e in zip(links.in_row.tolist(), links.in_edge.tolist())]
    return [number.layer(rows[s], entries[ptr[i] : ptr[i + 1]]) for i, s in enumerate(links.self_row.tolist())]


def _weighted(rows: list[int], copies: list[int]) -> Counter:
    found: Counter = Counter()
    for r, c in zip(rows, copies, strict=True):
        found[r] += c
    return found


def check_rows(plan: enfa.Plan, graphs: list[Data], policy: str) -> None:
    """No two different rows merged; in a distinct plan, no two equal rows kept apart; all counts right."""
    number = Numbers()
    expected = written_out(number, graphs, policy, plan.spec)
    found, tables = of_plan(number, plan)
    positive = lambda counts: +counts  # noqa: E731  Counter drops what is not positive
    for i in range(plan.spec.num_layers):
        # subgraphs may come in another order, within their graph and between the two enumerations
        assert _sorted(found.bags[i]) == _sorted(expected.bags[i]), f"table {i + 1}: rows of subgraphs"
        assert positive(found.conv[i]) == positive(expected.conv[i]), f"table {i + 1}: copies"
        assert min(found.conv[i].values(), default=0) >= 0
        if plan.spec.context is not None:
            assert positive(found.encoded[i]) == positive(expected.encoded[i]), f"table {i + 1}: nodes of contexts"
        if plan.kind == "distinct":
            for name, of_layer in tables.items():
                if of_layer:
                    assert len(set(of_layer[i])) == len(of_layer[i]), f"table {i + 1}: equal rows kept apart in {name}"
            # every row that some subgraph has, and no other
            assert set(tables["conv"][i]) == set(positive(expected.conv[i])), f"table {i + 1}: rows"
            assert set(tables["table"][i]) == set(positive(expected.table[i])), f"table {i + 1}: rows with contexts"


def _sorted(bags: list[Counter]) -> list:
    return sorted(sorted((+b).items()) for b in bags)
