"""What is measured: datasets from .npz files, the models run on them, and their losses."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch_geometric.data import Data

import enfa

POLICIES = {"marking": enfa.NodeMarking, "edge deletion": enfa.EdgeDeletion}


@dataclass(frozen=True)
class Case:
    """A dataset and the model that the targets are stated for."""

    name: str
    file: str
    conv: str
    width: int
    layers: int
    jk: str
    targets: dict[int, float]  # milliseconds per step under node marking, by batch size


CASES = [
    Case("PROTEINS", "PROTEINS", "gin", 32, 4, "concat", {32: 0.5, 128: 0.8}),
    Case("CEXP", "CEXP", "gin", 32, 5, "concat", {32: 0.5, 128: 0.8}),
    Case("molhiv", "ogbg_molhiv", "gine", 300, 5, "last", {32: 2.5, 128: 6.0}),
    Case("moltox21", "ogbg_moltox21", "gine", 300, 5, "last", {128: 4.0}),
    Case("peptides-func", "peptides_func", "gine", 128, 4, "last", {32: 1.0, 128: 2.0}),
]


class Dataset:
    """Graphs of an .npz file, made when they are asked for."""

    def __init__(self, folder: Path, case: Case) -> None:
        with np.load(folder / f"{case.file}.npz") as file:
            self.arrays = {k: file[k] for k in file.files}
        self.nodes, self.edges = (self.arrays[k].astype(np.int64) for k in ("num_nodes", "num_edges"))
        self.first_node, self.first_edge = np.cumsum(self.nodes) - self.nodes, np.cumsum(self.edges) - self.edges
        self.molecules = "edge_attr" in self.arrays
        labels = self.arrays["y"].astype(np.float32)
        self.y = torch.from_numpy(labels if self.molecules else (labels - labels.min()).astype(np.int64))
        if self.molecules:
            self.channels: int | list[int] = [int(v) + 1 for v in self.arrays["x"].max(0)]
            self.edge_channels: list[int] | None = [int(v) + 1 for v in self.arrays["edge_attr"].max(0)]
        else:
            self.channels, self.edge_channels = int(self.arrays["node_label"].max()) + 1, None

    def __len__(self) -> int:
        return len(self.nodes)

    @property
    def outputs(self) -> int:
        return (1 if self.y.ndim == 1 else self.y.shape[1]) if self.molecules else 2

    def graph(self, g: int) -> Data:
        nodes = slice(self.first_node[g], self.first_node[g] + self.nodes[g])
        edges = slice(self.first_edge[g], self.first_edge[g] + self.edges[g])
        ends = self.arrays["edges"][edges].astype(np.int64)
        if not self.molecules:
            kinds = torch.from_numpy(self.arrays["node_label"][nodes].astype(np.int64))
            x = F.one_hot(kinds, self.channels).float()
            return Data(x=x, edge_index=torch.from_numpy(np.ascontiguousarray(ends.T)))
        ends = ends.repeat(2, axis=0)  # each bond stands once in the file
        ends[1::2] = ends[1::2, ::-1]
        return Data(
            x=torch.from_numpy(self.arrays["x"][nodes].astype(np.int64)),
            edge_index=torch.from_numpy(np.ascontiguousarray(ends.T)),
            edge_attr=torch.from_numpy(self.arrays["edge_attr"][edges].astype(np.int64).repeat(2, axis=0)),
        )

    def batch(self, size: int) -> np.ndarray:
        """The graphs that every step is measured on, in file order."""
        return np.sort(np.random.RandomState(0).permutation(len(self))[:size])

    def targets(self, graphs: np.ndarray) -> Tensor:
        y = self.y[torch.from_numpy(graphs)]
        return y[:, None] if self.molecules and y.ndim == 1 else y


def plan_for(data: Dataset, graphs: np.ndarray, policy: str, model: nn.Module, kind: str) -> enfa.Bag:
    chosen = [data.graph(g) for g in graphs]
    if kind == "distinct":  # as training has it
        plan = enfa.compile(chosen, POLICIES[policy](), model, progress=False).plan(np.arange(len(chosen)))
    else:
        plan = enfa.make_plan(chosen, POLICIES[policy](), model, kind)
    plan.y = data.targets(graphs)
    return plan


def model_for(case: Case, data: Dataset, device: str = "cpu", dtype: torch.dtype = torch.float32) -> nn.Module:
    torch.manual_seed(0)
    model = enfa.DSGNN(
        data.channels, case.width, data.outputs, case.layers, case.conv,
        edge_channels=data.edge_channels, jk=case.jk,
    )  # fmt: skip
    return model.to(device=device, dtype=dtype)


def loss_for(data: Dataset) -> object:
    if not data.molecules:
        return F.cross_entropy

    def measured(out: Tensor, y: Tensor) -> Tensor:
        """The mean over what was measured: an unmeasured task is NaN."""
        there = y == y
        each = F.binary_cross_entropy_with_logits(out, torch.where(there, y, 0.0).to(out.dtype), reduction="none")
        return torch.where(there, each, 0.0).sum() / there.sum()

    return measured
