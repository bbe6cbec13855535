"""A rival's own code beside ours: first the outputs with the same weights, then milliseconds and memory of a training step.

    git clone https://github.com/subgraph23/SWL; git clone https://github.com/beabevi/SUN
    PYTHONPATH=src python benchmarks/peers.py --data FOLDER --swl SWL --sun SUN [--graphs 128] [--out results/gpu]

FOLDER holds ZINC.npz. Nothing of theirs is in this repository: their folders are read where they are. The same graphs,
sizes, loss and optimiser (Adam, fused) for both. Theirs runs eagerly and under torch.compile, ours captured; without a GPU only
outputs and gradients are compared. What their code imports and is not installed is stood in for, and named.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import gc
import json
import subprocess
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

import enfa
from enfa.datasets import load
from enfa.nn import GraphedStep
from peer_parts import sswl, sun
from peer_parts.peer import Peer

LOADERS = {"swl": sswl.load, "sun": sun.load}


def away(peer: Peer, graphs: list[Data]) -> dict[str, float]:
    """The largest difference of outputs and of gradients, relative to the largest of theirs; in float64."""
    theirs, ours = peer.theirs.double().train(), peer.ours.double().train()
    peer.pairs.copy()
    batch = peer.batch(graphs)
    plan = enfa.make_plan(graphs, peer.policy, ours)
    found = {}
    out = theirs(batch).view(-1)
    own = ours(plan).view(-1)
    out.square().sum().backward()
    own.square().sum().backward()
    found["outputs"] = float((out - own).detach().abs().max() / out.detach().abs().max())
    most = 0.0
    for a, b, turned in peer.pairs.parameters:
        assert a.grad is not None and b.grad is not None
        most = max(most, float((turned(a.grad) - b.grad).abs().max() / a.grad.abs().max().clamp(min=1e-3)))
    found["gradients"] = most
    theirs.zero_grad()
    ours.zero_grad()
    theirs.float()
    ours.float()
    peer.pairs.copy()
    return found


def _timed(step: Any) -> dict[str, float]:
    from gpu_parts.measure import median_ms

    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):  # a graph's memory is taken when it is captured
        step()
    ms, spread = median_ms(step, 1.0)
    return {"ms": ms, "spread_ms": spread, "peak_bytes": torch.cuda.max_memory_allocated()}


def times(peer: Peer, graphs: list[Data], compiled: bool) -> dict[str, dict[str, float]]:
    """Milliseconds and bytes of one step on a batch that is on the device."""
    found: dict[str, dict[str, float]] = {}
    loss = nn.functional.l1_loss

    def adam(model: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)

    batch = peer.batch(graphs).to("cuda")
    y = torch.stack([g.y.view(()) for g in graphs]).float().cuda()
    for name in ("theirs", "theirs, torch.compile")[: 1 + compiled]:
        model = copy.deepcopy(peer.theirs).cuda().train()
        optimiser = adam(model)
        call = torch.compile(model, dynamic=False) if name != "theirs" else model

        def step(call: Any = call, optimiser: Any = optimiser) -> None:
            optimiser.zero_grad(set_to_none=True)
            loss(call(copy.copy(batch)).view(-1), y).backward()
            optimiser.step()

        try:
            found[name] = _timed(step)
        except Exception as error:
            found[name] = {"failed": f"{type(error).__name__}: {str(error).splitlines()[0][:150]}"}  # type: ignore[dict-item]
        del model, optimiser, call, step
        gc.collect()
        torch.cuda.empty_cache()
    model = copy.deepcopy(peer.ours).cuda().train()
    own = GraphedStep(model, adam(model), lambda out, y: loss(out.view(-1), y.view(-1)))
    compiled_set = enfa.compile(graphs, peer.policy, model, progress=False)
    plan = compiled_set[list(range(len(graphs)))]
    staged = own.stage(plan)
    found["ours, captured"] = _timed(lambda: own(staged))
    eager = GraphedStep(model, adam(model), lambda out, y: loss(out.view(-1), y.view(-1)), capture=False)
    waiting = eager.stage(plan)
    found["ours, eager"] = _timed(lambda: eager(waiting))
    found["rows"] = {kind: _rows(enfa.make_plan(graphs, peer.policy, model.cpu(), kind)) for kind in ("full", "distinct")}
    return found


def _rows(plan: Any) -> int:
    """Rows that the convs of all layers compute."""
    return sum(table.links.num_rows for table in plan.tables if table.links is not None)


def version(folder: Path) -> str:
    """The commit of a clone, where it is one."""
    found = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "not a clone"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of ZINC.npz")
    for name in LOADERS:
        parser.add_argument(f"--{name}", type=Path, help=f"folder of the authors' code for {name}")
    parser.add_argument("--graphs", type=int, default=128)
    parser.add_argument("--checked", type=int, default=20, help="graphs whose outputs are compared")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile of theirs out")
    parser.add_argument("--out", type=Path, default=Path("results") / ("gpu" if torch.cuda.is_available() else "cpu"))
    args = parser.parse_args()
    zinc = load("ZINC", args.data)
    graphs = [zinc.graphs[int(i)] for i in zinc.split()["train"][: max(args.graphs, args.checked)]]
    result: dict[str, Any] = {
        "date": datetime.date.today().isoformat(), "torch": torch.__version__, "graphs": args.graphs,
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu", "peers": {},
    }  # fmt: skip
    for name, loader in LOADERS.items():
        folder = getattr(args, name)
        if folder is None:
            continue
        torch.manual_seed(0)
        peer = loader(folder)
        one: dict[str, Any] = {"commit": version(folder), "stood in for": peer.stood_in}
        one["away"] = away(peer, graphs[: args.checked])
        print(f"{peer.name}: away {one['away']}", flush=True)
        if torch.cuda.is_available():
            one["steps"] = times(peer, graphs[: args.graphs], not args.no_compile)
            for step, found in one["steps"].items():
                print(f"  {step:24}", {k: v if isinstance(v, str) else round(v, 3) for k, v in found.items()}, flush=True)
        result["peers"][peer.name] = one
        args.out.mkdir(parents=True, exist_ok=True)
        (args.out / "peers.json").write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
