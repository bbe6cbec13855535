"""Stored files that somebody has changed on purpose: whatever is put into them, the digest is right."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from stored import parts_of, single_changes, write, write_image, write_packed
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch import PackedLoader
from enfa.testing import degenerate_graphs, random_graphs

__all__ = ["CASES", "compiled_case", "model_of", "parts_of", "single_changes", "use", "write", "write_image", "write_packed"]

_X, _EDGES = [5, 3], {"edge_channels": [4, 3]}

# by name: the policy, the model (DS where it says no context) and its options, and the kind of a file
CASES: dict[str, tuple[enfa.Policy, dict[str, Any], str]] = {
    "ds": (enfa.NodeMarking(), {"jk": "concat"}, "distinct"),
    "ds, max": (enfa.NodeMarking(), {"readout": "max", "residual": True}, "distinct"),
    "ds, kept nodes": (enfa.EgoNets(1), {}, "distinct"),
    "ds, edge attributes": (enfa.EdgeDeletion(), {"conv": "gine", **_EDGES}, "distinct"),
    "ds, degrees": (enfa.NodeDeletion(), {"conv": "gcn", "dropout": 0.5}, "distinct"),
    "dss, input": (enfa.NodeMarking(), {"context": "dss", "conv": "gine", **_EDGES}, "distinct"),
    "dss, output": (enfa.NodeMarking(), {"context": "identity", "dropout": 0.5}, "distinct"),
    "dss, encoder": (enfa.NodeDeletion(), {"context": "mpnn", "conv": "gcn"}, "distinct"),
    "root": (enfa.NodeMarking(), {"readout": "root"}, "distinct"),
    "root, pruned": (enfa.EdgeMarking(), {"readout": "root", "conv": "gine", "norm": None, **_EDGES}, "distinct"),
    "node": (enfa.NodeMarking(), {"readout": "node", "jk": "concat"}, "distinct"),
    "ego": (enfa.EdgeDeletion(), {"conv": "gine", **_EDGES}, "ego"),
    "ego, kept nodes": (enfa.EgoNets(1), {"readout": "root"}, "ego"),
    "full": (enfa.NodeDeletion(), {"context": "mpnn"}, "full"),
}


def model_of(name: str) -> nn.Module:
    policy, options, _ = CASES[name]
    options = {"mark_channels": policy.mark_channels, "edge_mark_channels": policy.edge_mark_channels, **options}
    torch.manual_seed(0)
    return (enfa.DSSGNN if "context" in options else enfa.DSGNN)(_X, 4, 2, 2, **options)


def compiled_case(name: str) -> enfa.CompiledDataset:
    policy, _, kind = CASES[name]
    return enfa.compile(_graphs(), policy, model_of(name).spec, progress=False, kind=kind)


def _graphs() -> list[Data]:
    graphs = random_graphs(6, 6, channels=[3, 2], edge_channels=[3, 2])
    graphs += degenerate_graphs([3, 2], [3, 2]).values()
    for i, graph in enumerate(graphs):
        graph.y = torch.tensor([i])
    return graphs


def use(compiled: enfa.CompiledDataset, model: nn.Module) -> None:
    """All that is done with a dataset: batches, gradients, packed batches, fewer layers, more graphs."""

    def attempt(act: Callable[[], object]) -> None:
        try:
            act()
        except Exception as error:  # an error is no crash
            if str(error) == "index is out of bounds":  # what numba says with NUMBA_BOUNDSCHECK=1
                raise

    def run(chosen: object, train: bool) -> None:
        model.train(train)(compiled[chosen]).sum().backward()

    def packed() -> None:
        loader = PackedLoader(compiled, model.needs, 3, True, 0, 1)  # type: ignore[arg-type]
        for batch in loader:
            model(batch.plan)
        loader.close()

    for chosen in ([3, 0, 5], slice(None), [2]):
        attempt(lambda chosen=chosen: run(chosen, True))
    attempt(lambda: run([1, 2, 7, 12], False))
    attempt(packed)
    attempt(lambda: compiled.first_layers(1)[[4, 1]])
    attempt(lambda: compiled.extend(random_graphs(2, 5, channels=[5, 3], edge_channels=[4, 3], seed=9)))
    attempt(lambda: run(slice(None), True))


def main(seed: str, count: str, *cases: str) -> None:
    """Load and use so many files of each case, each with one number changed. Prints how many were refused, and how many not."""
    torch.set_num_threads(1)
    for case in cases or CASES:
        model, refused = model_of(case), 0
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.enfa"
            compiled_case(case).save(path)
            header, arrays = parts_of(path)
            changed = single_changes(arrays, int(seed))
            for _ in range(int(count)):
                write(path, header, next(changed))
                try:
                    loaded = enfa.load_compiled(path)
                except enfa.batch.CorruptFileError:
                    refused += 1
                else:
                    use(loaded, model)
        print(f"{case}: {refused} {int(count) - refused}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
