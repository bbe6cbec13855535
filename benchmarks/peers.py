"""A rival's own code beside ours: first the outputs with the same weights, then milliseconds and memory of a training step.

    git clone https://github.com/subgraph23/SWL; git clone https://github.com/beabevi/SUN
    git clone https://github.com/beabevi/ESAN; git clone https://github.com/GraphPKU/PygHO
    PYTHONPATH=src python benchmarks/peers.py --data FOLDER --esan ESAN --pygho PygHO --swl SWL --sun SUN --minutes 5

FOLDER holds the datasets as .npz files. Nothing of theirs is in this repository: their folders are read where they are. The
same graphs, sizes, loss and optimiser (Adam, fused) for both: ESAN and PygHO on those of benchmarks/gpu.py, the others on
ZINC. Theirs runs eagerly, under torch.compile, and each of these as a CUDA graph, which we capture, where that can be done;
ours captured and eagerly. Without a GPU only outputs and gradients are compared. What their code imports and is not installed
is stood in for, and named. Each peer runs in a process of its own, which ends when its minutes are over; peers.json is
written after every figure.
"""

from __future__ import annotations

import argparse
import copy
import datetime
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

import enfa
from peer_parts import esan, pygho, sswl, sun
from peer_parts.peer import Peer
from peer_parts.steps import MEASURES, Timed

LOADERS = {"esan": esan.load, "pygho": pygho.load, "swl": sswl.load, "sun": sun.load}
GPU = torch.cuda.is_available()


def away(peer: Peer, count: int) -> dict[str, float]:
    """The largest difference of outputs and of gradients, relative to the largest of theirs; in float64, in training. And of
    outputs in evaluation behind that, by the running statistics of this one batch.

    As ``enfa.testing`` has it, a gradient is measured against its largest entry, at least a hundredth of the largest of all:
    that of a bias in front of BatchNorm is zero but for rounding.
    """
    device, graphs = "cuda" if GPU else "cpu", peer.graphs[:count]
    theirs, ours = peer.theirs.double().train(), peer.ours.double().train()
    peer.pairs.copy()
    theirs_there, ours_there = copy.deepcopy((theirs, ours))
    batch, plan = peer.batch(graphs).to(device), enfa.make_plan(graphs, peer.policy, ours).to(device)
    out, own = theirs_there.to(device)(copy.copy(batch)), ours_there.to(device)(plan)
    with torch.no_grad():
        later, own_later = theirs_there.eval()(copy.copy(batch)), ours_there.eval()(plan)
    for model, found, there in ((theirs, out, theirs_there), (ours, own, ours_there)):
        found.square().sum().backward()
        for parameter, other in zip(model.parameters(), there.parameters()):
            parameter.grad = None if other.grad is None else other.grad.cpu()
    result = {
        "outputs": float((out.reshape(own.shape) - own).detach().abs().max() / out.detach().abs().max()),
        "gradients": 0.0,
        "evaluated": float((later.reshape(own.shape) - own_later).abs().max() / later.abs().max()),
    }
    pairs = [(torch.cat([_grad(part) for part in parts]), _grad(b), turned) for parts, b, turned in peer.pairs.parameters]
    least = 0.01 * max(float(a.abs().max()) for a, _, _ in pairs)
    for a, b, turned in pairs:
        result["gradients"] = max(result["gradients"], float((turned(a) - b).abs().max()) / max(float(a.abs().max()), least))
    for model in (theirs, ours):
        model.zero_grad()
        model.float()
    peer.pairs.copy()
    return result


def _grad(of: torch.Tensor) -> torch.Tensor:
    assert of.grad is not None, "a parameter that nothing reads"
    return of.grad


def version(folder: Path) -> str:
    """The commit of a clone; of some files of one, what the file COMMIT beside them says."""
    if (folder / "COMMIT").exists():
        return (folder / "COMMIT").read_text().strip()
    if not (folder / ".git").exists():
        return "not a clone"
    found = subprocess.run(["git", "-C", str(folder), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "not a clone"


class Results:
    """peers.json: what is there of other peers stays."""

    def __init__(self, path: Path, graphs: int) -> None:
        self.path = path
        about = {
            "date": datetime.date.today().isoformat(), "commit": _code(), "torch": torch.__version__, "graphs": graphs,
            "device": torch.cuda.get_device_name() if GPU else "cpu",
        }  # fmt: skip
        old = json.loads(path.read_text()) if path.exists() else {}
        self.found: dict[str, Any] = {**about, "peers": old.get("peers", {})}

    def write(self, name: str, one: dict[str, Any]) -> None:
        self.found["peers"][name] = one
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps(self.found, indent=1) + "\n")


def _code() -> str:
    root = str(Path(__file__).resolve().parent.parent)
    found = subprocess.run(["git", "-C", root, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def one_peer(name: str, args: argparse.Namespace) -> None:
    """All cases of a peer: of each its exactness and plain steps, then of all what takes long to compile."""
    folder, end = getattr(args, name), time.monotonic() + 60 * args.minutes
    results, waiting = Results(args.out / "peers.json", args.graphs), []

    def times(timed: Timed, one: dict[str, Any], measures: Sequence[str]) -> bool:
        """Whether there was time for all of it."""
        for measure in measures:
            if time.monotonic() > end:
                print(f"{name}: {args.minutes} minutes are over", flush=True)
                return False
            found = timed.measure(measure)
            one.setdefault("steps", {})[measure] = found
            shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}
            print(f"  {timed.peer.name:36} {measure:34}", shown, flush=True)
            results.write(timed.peer.name, one)
        return True

    torch.manual_seed(0)
    for peer in LOADERS[name](folder, args.data, max(args.graphs, args.checked), args.cases):
        if args.policies and not any(peer.name.endswith(policy) for policy in args.policies):
            continue
        one: dict[str, Any] = {
            "commit": version(folder),
            "stood in for": peer.stood_in,
            "checked": min(args.checked, len(peer.graphs)),
        }
        one["away"] = away(peer, args.checked)
        print(f"{peer.name}: away {one['away']}", flush=True)
        results.write(peer.name, one)
        if GPU:
            waiting.append((Timed(peer, args.graphs), one))
            if not times(*waiting[-1], MEASURES[0]):
                return
    for timed, one in waiting if args.compile else ():
        if not times(timed, one, MEASURES[1]):
            return


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("data"), help="folder of .npz files")
    for name in LOADERS:
        parser.add_argument(f"--{name}", type=Path, help=f"folder of the authors' code for {name}")
    parser.add_argument("--graphs", type=int, default=128)
    parser.add_argument("--checked", type=int, default=20, help="graphs whose outputs are compared")
    parser.add_argument("--cases", default=[], type=lambda s: s.split(","), help="of ESAN and PygHO: PROTEINS,CEXP,... (all)")
    parser.add_argument("--policies", default=[], type=lambda s: s.split(","), help="of ESAN: marking,node deletion (all)")
    parser.add_argument("--minutes", type=float, default=10, help="of each peer")
    parser.add_argument("--no-compile", dest="compile", action="store_false", help="leave torch.compile of theirs out")
    parser.add_argument("--out", type=Path, default=Path("results") / ("gpu" if GPU else "cpu"))
    parser.add_argument("--only", choices=LOADERS, help="this peer, in this process")
    args = parser.parse_args()
    if args.only:
        one_peer(args.only, args)
        return
    for name in LOADERS:
        if getattr(args, name) is not None:
            try:  # what compiles or hangs does not look at the clock
                subprocess.run([sys.executable, *sys.argv, "--only", name], timeout=60 * args.minutes + 30)
            except subprocess.TimeoutExpired:
                print(f"{name}: stopped, its minutes were over", flush=True)


if __name__ == "__main__":
    main()
