"""Counted bytes are those of files really written, and on the whole datasets those that the paper reports."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from sampled import sample_npz
from subgraphs import bag, undirected
from torch_geometric.data import Batch, Data

import enfa
import enfa.report.bags.storage
from enfa.datasets import from_npz
from enfa.graphs import GraphSet, check_graphs
from enfa.report.bags.storage import count_bags, stored_bags
from enfa.report.pictures.sharing import sharing_of
from enfa.report.program import ds_program
from enfa.testing import degenerate_graphs, random_graphs

FILES = ("PROTEINS", "EXP", "CEXP", "ogbg_moltox21", "ogbg_molhiv", "peptides_func")
POLICIES = {"mark": enfa.NodeMarking(), "delete": enfa.NodeDeletion(), "edge": enfa.EdgeDeletion()}


def _ego_edges(graph: Data, subgraph: Data, pivots: set[int], hops: int) -> torch.Tensor:
    """bool [edges of the subgraph]: both ends within ``hops`` of a pivot, step by step."""
    ends = subgraph.node[subgraph.edge_index]
    near, reach = set(pivots), set(pivots)
    for _ in range(hops):
        reach = {v for u, v in ends.T.tolist() if u in reach} - near
        near |= reach
    inside = torch.tensor([v in near for v in range(graph.num_nodes)], dtype=torch.bool)
    return inside[ends].all(0)


def _pivots(graph: Data, name: str, r: int) -> set[int]:
    src, dst = graph.edge_index
    if name == "mark":
        return {r}
    if name == "delete":
        return set(dst[src == r].tolist()) - {r}
    columns = undirected(graph)
    return set(graph.edge_index[:, list(columns[r])].flatten().tolist()) if columns else set()


class Writer:
    """Writes arrays as they are, one file each, and tells what they take by group."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.count = folder, 0
        self.sizes = dict.fromkeys(("edges", "pairs", "features", "rest"), 0)

    def write(self, group: str, *tensors: torch.Tensor | None) -> None:
        for tensor in tensors:
            if tensor is not None:
                path = self.folder / f"{self.count}.bin"
                tensor.numpy().tofile(path)
                self.sizes[group] += path.stat().st_size
                self.count += 1


def _bags(graphs: list[Data], name: str) -> Iterator[tuple[Data, list[Data], list[set[int]]]]:
    for graph in graphs:
        subgraphs = bag(graph, name)
        yield graph, subgraphs, [_pivots(graph, name, r) for r in range(len(subgraphs))]


def _write_paper(graphs: list[Data], name: str, layers: int | None, folder: Path) -> dict[str, int]:
    writer = Writer(folder)
    for graph, subgraphs, pivots in _bags(graphs, name):
        writer.write("features", graph.x)
        writer.write("rest", graph.edge_index, graph.edge_attr)
        for one, around in zip(subgraphs, pivots):
            keep = torch.ones(one.edge_index.shape[1], dtype=torch.bool)
            if layers is not None:
                keep = _ego_edges(graph, one, around, layers + 1)
                writer.write("pairs", torch.zeros(graph.num_nodes, dtype=torch.long))  # pivot hops
            attr = None if one.edge_attr is None else one.edge_attr[keep]
            writer.write("edges", one.edge_index[:, keep], attr)
    return writer.sizes


def _write_esan(graphs: list[Data], name: str, layers: int | None, folder: Path) -> dict[str, int]:
    """As ESAN's pre_transform lays them out, collated over graphs with one offset per graph and array."""
    writer, offsets = Writer(folder), 0
    for graph, subgraphs, pivots in _bags(graphs, name):
        parts = []
        for i, (one, around) in enumerate(zip(subgraphs, pivots)):
            edges, attr = one.node[one.edge_index], one.edge_attr
            if layers is not None:
                keep = _ego_edges(graph, one, around, layers + 1)
                edges, attr = edges[:, keep], None if attr is None else attr[keep]
            x = graph.x
            if name == "mark":
                x = torch.cat([x, (torch.arange(graph.num_nodes) == i)[:, None].to(x.dtype)], 1)
            more = {} if layers is None else {"hop": torch.zeros(graph.num_nodes, dtype=torch.long)}
            parts.append(
                Data(x=x, edge_index=edges, edge_attr=attr, subgraph_idx=torch.tensor([i]), num_nodes=graph.num_nodes,
                     subgraph_node_idx=torch.arange(graph.num_nodes), **more)
            )  # fmt: skip
        batch = Batch.from_data_list(parts)
        whole = {
            "edges": (batch.edge_index, batch.edge_attr),
            "pairs": (batch.batch, batch.subgraph_node_idx, None if layers is None else batch.hop),
            "features": (batch.x,),
            "rest": (
                batch.subgraph_idx, graph.y, torch.tensor([len(parts)]), torch.tensor([graph.num_nodes]),
                graph.edge_index, graph.edge_attr,
            ),
        }  # fmt: skip
        offsets = sum(t is not None for tensors in whole.values() for t in tensors)
        for group, tensors in whole.items():
            writer.write(group, *tensors)
    writer.write("rest", torch.zeros(offsets, len(graphs) + 1, dtype=torch.long))
    return writer.sizes


def _counted(graphs: list[Data], name: str, layout: str, layers: int | None) -> dict[str, int]:
    checked = check_graphs(graphs)
    bags = count_bags(checked, POLICIES[name].edits(checked), 3 + 1)
    return stored_bags(bags, layout, layers, sum(g.y.numel() * g.y.element_size() for g in graphs))


WRITERS = {"paper": _write_paper, "esan": _write_esan}


@pytest.mark.parametrize("layers", [None, 1, 2])
@pytest.mark.parametrize("layout", WRITERS)
@pytest.mark.parametrize("name", POLICIES)
def test_counts_are_those_of_written_files(layout: str, name: str, layers: int | None, tmp_path: Path) -> None:
    graphs = random_graphs(6, 9, channels=[3, 2], edge_channels=[3, 2])
    graphs += [g for k, g in degenerate_graphs([3, 2], [3, 2]).items() if k != "no nodes"]
    for graph in graphs:
        graph.y = torch.zeros(1, 3)
    assert _counted(graphs, name, layout, layers) == WRITERS[layout](graphs, name, layers, tmp_path)


@pytest.mark.parametrize("file", FILES)
def test_samples_of_every_dataset(file: str, shared_data: Path, tmp_path: Path) -> None:
    with np.load(shared_data / f"{file}.npz") as whole:
        nodes = whole["num_nodes"]
    some = np.arange(0, len(nodes), len(nodes) // 12)
    few = some[np.argsort(nodes[some], kind="stable")[:3]]
    graphs = from_npz(sample_npz(shared_data / f"{file}.npz", few, tmp_path / "few.npz")).graphs
    assert sorted(graph.num_nodes for graph in graphs) == nodes[few].tolist()
    for name, layout, layers in itertools.product(POLICIES, WRITERS, (None, 3)):
        assert _counted(graphs, name, layout, layers) == WRITERS[layout](graphs, name, layers, tmp_path)


_PARAMS: dict[str, dict] = {
    "ego_nets": {"hops": 2}, "neighbor_marking": {"hops": 2}, "reconstruction": {"k": 3},
    "most_central": {"policy": "node_marking", "count": 2}, "subsample": {"policy": {"name": "node_marking"}, "count": 2},
}  # fmt: skip


@pytest.mark.parametrize("name", enfa.edits.POLICIES)
def test_rows_and_edges_of_every_policy(name: str) -> None:
    policy = enfa.edits.policy_from(name, **_PARAMS.get(name, {}))
    graphs = [*random_graphs(8, 7, channels=[3, 2], edge_channels=[3, 2]), *degenerate_graphs([3, 2], [3, 2]).values()]
    checked = check_graphs(graphs)
    bags = count_bags(checked, policy.edits(checked), 2)
    full = enfa.make_plan(graphs, policy, ds_program(1, edges=True), "full")
    assert [bags.rows, bags.sub_edges] == [*full.cost().rows, *full.cost().edges]
    assert bags.subgraphs == full.num_subgraphs


def test_rows_within_hops_are_those_that_an_edit_reaches() -> None:
    """All of them, where no two nodes have the same features."""
    graphs = random_graphs(10, 9)
    checked = check_graphs(graphs)
    bags = count_bags(checked, enfa.NodeMarking().edits(checked), 4)
    full = enfa.make_plan(graphs, enfa.NodeMarking(), ds_program(4), "full")
    assert bags.rows == full.num_pairs and bags.sub_edges == full.cost().edges[0]
    shared = [sharing_of(graph, enfa.NodeMarking(), ds_program(4)) for graph in graphs]
    assert bags.rows_within == sum((s.rows != s.base[:, None]).sum((1, 2)) for s in shared).tolist()


def _whole(path: Path) -> GraphSet:
    """All graphs of a file; features and attributes only as wide as they are."""
    with np.load(path) as file:
        data = {key: file[key] for key in ("num_nodes", "num_edges", "edges")}
        widths = [file[key].shape[1] if key in file else 0 for key in ("x", "edge_attr")]
    ptr = np.concatenate([[0], np.cumsum(data["num_nodes"])])
    edges = data["edges"] + np.repeat(ptr[:-1], data["num_edges"])[:, None]
    if widths[1]:  # molecules: each bond stands once
        edges = np.concatenate([edges, edges[:, ::-1]])
    edges = edges[np.argsort(edges[:, 1], kind="stable")].astype(np.int64)
    zeros = np.zeros(len(edges), np.int64)
    attr = np.zeros((1, widths[1]), np.int64) if widths[1] else None
    return GraphSet(
        ptr, edges[:, 0].copy(), edges[:, 1].copy(), np.arange(len(edges)), np.zeros(ptr[-1], np.int64),
        np.zeros((1, widths[0] or 1), np.int64), zeros, attr,
    )  # fmt: skip


@pytest.mark.parametrize(("file", "megabytes"), [("PROTEINS", 444), ("ogbg_moltox21", 342), ("ogbg_molhiv", 3132)])
def test_conventional_bags_under_edge_deletion(file: str, megabytes: int, shared_data: Path) -> None:
    graphs = _whole(shared_data / f"{file}.npz")
    bags = count_bags(graphs, enfa.EdgeDeletion().edits(graphs), 0)
    assert abs(sum(stored_bags(bags, "paper").values()) / 1e6 - megabytes) < 0.6


@pytest.mark.parametrize(
    ("file", "policy", "percent"),
    [
        ("peptides_func", enfa.NodeDeletion(), {2: 84.6, 3: 82.6, 4: 80.6, 5: 78.4}),
        ("ogbg_moltox21", enfa.NodeMarking(), {5: 28.8}),
    ],
)
def test_what_ego_nets_save(file: str, policy: enfa.Policy, percent: dict[int, float], shared_data: Path) -> None:
    graphs = _whole(shared_data / f"{file}.npz")
    bags = count_bags(graphs, policy.edits(graphs), 6)
    whole = sum(stored_bags(bags, "paper").values())
    for layers, expected in percent.items():
        saved = 100 * (1 - sum(stored_bags(bags, "paper", layers).values()) / whole)
        assert abs(saved - expected) < 0.06


def test_an_unknown_layout_is_refused() -> None:
    graphs = check_graphs(random_graphs(2))
    bags = count_bags(graphs, enfa.NodeMarking().edits(graphs), 2)
    with pytest.raises(ValueError, match="did you mean 'paper'"):
        stored_bags(bags, "papre")
