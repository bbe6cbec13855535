"""Which kernels most runs need: writes src/enfa/ahead.json, what ``enfa.ahead`` compiles on the first run.

    PYTHONPATH=src python benchmarks/kernels.py

Small runs of several models and policies, each in a process of its own; a kernel that all runs of a group call, with the same
types, is in the list, with the seconds that compiling it took here.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from os import environ
from typing import Any

ROWS = ("gin marking", "gine marking", "gin node deletion", "gine edge deletion", "gine dss marking")
# by group of enfa.ahead, those without what the first group has
RUNS = {
    "rows": ROWS,
    "batches": ("gine marking packed", "gine edge deletion packed"),
    "cut": ("gin marking packed", "gin node deletion packed"),
    "file": ("gin marking file", "gine edge deletion file"),
}


def called(run: str) -> list[dict[str, Any]]:
    """The kernels that a small run has called, and their types."""
    import torch
    from numba.core.dispatcher import Dispatcher

    import enfa
    from enfa.batch.static.packed import PackedLoader
    from enfa.testing import random_graphs

    graphs = random_graphs(24, nodes=12, channels=3)
    for graph in graphs:
        graph.x, graph.y = graph.x.argmax(1, keepdim=True), torch.tensor([0])
        if "gine" in run:
            graph.edge_attr = torch.arange(graph.num_edges)[:, None] % 3
    policy = enfa.NodeDeletion() if "node" in run else enfa.EdgeDeletion() if "edge" in run else enfa.NodeMarking()
    kind = enfa.DSSGNN if "dss" in run else enfa.DSGNN
    edges = {"edge_channels": [3]} if "gine" in run else {}
    model = kind([3], 8, 2, 3, run.split()[0], **edges)
    compiled = enfa.compile(graphs, policy, model, progress=False)
    if "file" in run:
        with tempfile.TemporaryDirectory() as folder:
            compiled.save(f"{folder}/file.enfa")
            enfa.load_compiled(f"{folder}/file.enfa")
    if "packed" in run:
        for shuffle in (True, False):
            list(PackedLoader(compiled, None, 8, shuffle))
    for plan in enfa.DataLoader(compiled, 8, shuffle=True) if "file" not in run else ():
        model(plan).sum().backward()
    found = []
    for name, module in list(sys.modules.items()):
        # those of enfa.nn compute rows: on a GPU others do, and a CPU's first step waits two seconds for them
        ours = name.startswith("enfa.") and not name.startswith("enfa.nn.")
        for what, value in vars(module).items() if ours else ():
            if isinstance(value, Dispatcher) and value.py_func.__module__ == name:
                found += [{"name": f"{name[5:]}.{what}", "types": [written(t) for t in s]} for s in value.signatures]
    return found


def written(kind: Any) -> str | list[Any] | dict[str, Any]:
    """As ``enfa.ahead.parsed`` reads it."""
    from numba import types
    from numba.np.numpy_support import as_dtype

    if isinstance(kind, types.BaseTuple):
        of: Any = kind
        return [f"{of.instance_class.__module__[5:]}.{of.instance_class.__name__}", *map(written, of.types)]
    if isinstance(kind, types.Array) and isinstance(kind.dtype, types.Record):
        return {"fields": as_dtype(kind.dtype).descr, "dimensions": kind.ndim}
    if isinstance(kind, types.Array):
        assert kind.layout in "CA" and kind.aligned, kind
        return f"{kind.dtype}[{kind.ndim}]" + " apart" * (kind.layout == "A") + " read" * (not kind.mutable)
    return str(kind)


def timed(kernel: dict[str, Any]) -> float:
    """Seconds to compile it, with nothing kept."""
    from enfa.ahead import _found, parsed

    compiling = _found(kernel["name"])
    begin = time.process_time()
    compiling.compile(tuple(map(parsed, kernel["types"])))
    return round(time.process_time() - begin, 2)


def _process(*arguments: str) -> Any:
    with tempfile.TemporaryDirectory() as folder:
        fresh = {"ENFA_CACHE": folder} if arguments[0] == "timed" else {}
        env = {**environ, **fresh, "ENFA_AHEAD": "0"}
        done = subprocess.run([sys.executable, __file__, *arguments], env=env, capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def common() -> list[dict[str, Any]]:
    """What all runs of a group have called, but for kernels of one that may be begun beside it, with whatever types: the
    machine code of one kernel lies in one folder, into which two processes must not write at the same time."""
    found: list[dict[str, Any]] = []
    for group, runs in RUNS.items():
        called = set.intersection(*({json.dumps(kernel) for kernel in _process("called", run)} for run in runs))
        names = {kernel["name"] for kernel in found if kernel["for"] == "rows" or group == "file"}
        every = [{**json.loads(text), "for": group} for text in sorted(called)]
        found += [kernel for kernel in every if kernel["name"] not in names]
    return found


def main() -> None:
    if len(sys.argv) > 2:
        print(json.dumps(called(sys.argv[2]) if sys.argv[1] == "called" else timed(json.loads(sys.argv[2]))))
        return
    from enfa.ahead import LIST

    found = sorted(
        ({**kernel, "seconds": _process("timed", json.dumps(kernel))} for kernel in common()), key=lambda k: -k["seconds"]
    )
    LIST.write_text("[\n" + ",\n".join(json.dumps(kernel) for kernel in found) + "\n]\n")
    print(f"{len(found)} kernels, {sum(kernel['seconds'] for kernel in found):.1f} s")


if __name__ == "__main__":
    main()
