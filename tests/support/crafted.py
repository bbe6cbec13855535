"""Stored files that somebody has changed on purpose: whatever is put into them, the digest is right."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import load, save
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.batch import PackedLoader
from enfa.batch.file.packing import pack, unpack
from enfa.testing import degenerate_graphs, random_graphs

__all__ = ["CASES", "compiled_case", "model_of", "parts_of", "single_changes", "use", "write", "write_image", "write_packed"]

_TRAILER = 40
_packed: dict[int, tuple[np.ndarray, dict[str, Any], np.ndarray]] = {}  # by id, with the array itself, which so stays

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


def parts_of(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The header of a file, and all its arrays."""
    packed = load(path.read_bytes()[:-_TRAILER])
    header = json.loads(packed.pop("header").tobytes())
    return header, {name: unpack(data, header["arrays"][name]) for name, data in packed.items()}


def write(
    path: Path, header: Any, arrays: dict[str, np.ndarray], how: dict[str, Any] | None = None, text: bytes | None = None
) -> Path:
    """A file with these arrays and the digest that belongs to them. ``how`` replaces what is said of some arrays."""
    packed, described = {}, {}
    for name, array in arrays.items():
        if id(array) not in _packed:  # most are the same in many files
            _packed[id(array)] = *pack(array), array
        packed[name], described[name], _ = _packed[id(array)]
    if isinstance(header, dict):
        header = {**header, "arrays": {**described, **(how or {})}}
    packed["header"] = np.frombuffer(json.dumps(header).encode() if text is None else text, np.uint8)
    return write_image(path, save(packed))


def write_image(path: Path, image: bytes) -> Path:
    path.write_bytes(image + b"ENFA0001" + hashlib.blake2b(image, digest_size=32).digest())
    return path


def write_packed(path: Path, changes: dict[str, bytes]) -> Path:
    """The same file with other bytes where some arrays were packed."""
    packed = load(path.read_bytes()[:-_TRAILER]) | {n: np.frombuffer(data, np.uint8) for n, data in changes.items()}
    return write_image(path, save(packed))


def single_changes(arrays: dict[str, np.ndarray], seed: int) -> Iterator[dict[str, np.ndarray]]:
    """For ever: the same arrays, one number of one of them changed to one that may be in range or not."""
    rng = np.random.default_rng(seed)
    names = sorted(name for name, array in arrays.items() if array.size)  # files are read in any order
    while True:
        name = str(rng.choice(names))
        array = arrays[name].copy()
        flat = array.reshape(-1)
        at = int(rng.integers(len(flat)))
        near = float(flat[at]) + int(rng.integers(-3, 4))
        value = rng.choice([near, 0, -1, -2, int(flat.max()), int(flat.max()) + 1, len(flat), 2**31 - 1, -(2**31), 10**4])
        with np.errstate(all="ignore"):
            flat[at] = np.array(value).astype(flat.dtype)
        yield {**arrays, name: array}


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
