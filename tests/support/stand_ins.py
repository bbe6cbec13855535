"""Small files in the layouts that the pages' commands name, so that these can be run as they stand."""

import csv
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from known_graphs import graph_of, ring, triangles_and_hexagon
from pages import ROOT
from torch_geometric.data import Data
from typer.testing import CliRunner

import enfa
from enfa.cli.app import app
from enfa.datasets.npz import zinc

SMALL = ["epochs=1", "num_layers=1", "hidden_channels=4", "accelerator=cpu", "threads=1", "--no-progress"]
CHAINS = ["C" * (1 + k) + end for k in range(10) for end in ("O", "N", "Cl")]


def clone(folder: Path) -> None:
    """What commands find in a clone of the repository, and may change."""
    for name in ("configs", "examples"):
        (folder / name).symlink_to(ROOT / name)
    for name in ("docs", "data", "results"):
        (folder / name).mkdir()
    for path in (ROOT / "results").glob("*.json"):
        shutil.copy(path, folder / "results")


def write_npz(path: Path, graphs: list[Data], **arrays: object) -> None:
    edges = [graph.edge_index.T.numpy() for graph in graphs]
    edges = [each[each[:, 0] < each[:, 1]] for each in edges]
    nodes = [graph.num_nodes for graph in graphs]
    np.savez(path, num_nodes=nodes, num_edges=[len(e) for e in edges], edges=np.concatenate(edges), **arrays)


def proteins(path: Path) -> None:
    """Rings with nodes of three kinds, of two classes: as many as ten folds need."""
    graphs = [ring(5 + k % 3) for k in range(40)]
    kinds = np.concatenate([np.arange(graph.num_nodes or 0) % 3 for graph in graphs])
    write_npz(path, graphs, node_label=kinds, y=np.arange(40) % 2)


def brec(path: Path) -> None:
    """Two triangles and a hexagon, 400 times."""
    write_npz(path, 400 * triangles_and_hexagon(), category=np.arange(400) % 2, categories=["Basic", "CFI"])


def strongly_regular(path: Path) -> None:
    """The graph of a Latin square, 15 times: cells that share a row, a column or a number."""
    cells = [(i, j, (i + j) % 5) for i in range(5) for j in range(5)]
    pairs = [(a, b) for a, b in combinations(range(25), 2) if any(x == y for x, y in zip(cells[a], cells[b]))]
    write_npz(path, 15 * [graph_of(25, pairs)])


def zinc_file(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve molecules of two atoms, half of them in the subset."""
    monkeypatch.setattr(zinc, "SIZES", {"ZINC": ("split_", (4, 1, 1)), "ZINC-full": ("full_", (10, 1, 1))})
    np.savez(
        path, num_nodes=np.full(12, 2), num_edges=np.ones(12, int), edges=np.tile([0, 1], (12, 1)), x=np.arange(24)[:, None],
        edge_attr=np.ones((12, 1), int), y=np.arange(12.0)[:, None], full_train=np.arange(10), full_val=[10], full_test=[11],
        split_train=np.arange(4), split_val=[10], split_test=[11],
    )  # fmt: skip


def molecules(path: Path, target: str) -> None:
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["smiles", target], *([text, k / 7] for k, text in enumerate(CHAINS))])


def one_graph(path: Path) -> None:
    """A ring of 60 nodes of three kinds, which are their labels, with masks."""
    node = np.arange(60)
    parts = {name: node // 5 % 3 == k for k, name in enumerate(("train_mask", "val_mask", "test_mask"))}
    np.savez(path, edge_index=np.stack([node, (node + 1) % 60]), x=np.eye(3)[node % 3], y=node % 3, **parts)


def given(*words: str) -> None:
    """A command that the reader has given before."""
    result = CliRunner().invoke(app, [*words])
    assert result.exit_code == 0, result.output


def lay_out(page: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a page takes for granted."""
    clone(folder)
    data = folder / "data"
    if page in ("README", "training", "reproduce", "policies", "scale"):
        proteins(data / "PROTEINS.npz")
    if page in ("README", "power"):
        brec(data / "BREC.npz")
    if page in ("README", "scale"):
        zinc_file(data / "ZINC.npz", monkeypatch)
    if page == "power":
        strongly_regular(data / "SR25.npz")
    elif page == "training":
        proteins(folder / "new.npz")
        molecules(folder / "molecules.csv", "activity")
        one_graph(folder / "graph.npz")
    elif page == "explain":
        molecules(folder / "new.csv", "gap")
        given("train", "new.csv", *SMALL)
        shutil.copy("runs/new/fold-0-seed-0/best.ckpt", "best.ckpt")
        given("convert", "new.csv", "new.npz")


def before_sentences(page: str) -> None:
    """What the text has said by then."""
    if page == "pretrained":
        enfa.load("runs/new/fold-0-seed-0/best.ckpt").save_pretrained("my_model")
    elif page == "training":
        given("train", "graph.npz", "--task", "nodes", "name=before", *SMALL)
        shutil.copy("runs/before/fold-0-seed-0/best.ckpt", "best.ckpt")
