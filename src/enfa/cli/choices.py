"""Reading what users type: datasets, policies, numbers of layers."""

from __future__ import annotations

from pathlib import Path

from enfa.datasets import Benchmark, from_npz, load
from enfa.edits import EdgeDeletion, NodeDeletion, NodeMarking, Policy
from enfa.plan.make import unknown

__all__ = ["POLICIES", "dataset_of", "layers_of", "policy_of", "words"]

POLICIES: dict[str, type[Policy]] = {
    "node_marking": NodeMarking,
    "node_deletion": NodeDeletion,
    "edge_deletion": EdgeDeletion,
}


def dataset_of(name: str, root: Path) -> Benchmark:
    """A dataset by its official name, from raw files below ``root``; or from an .npz file, by its path."""
    if name.endswith(".npz"):
        if not Path(name).is_file():
            raise FileNotFoundError(f"{name}: no such file")
        return from_npz(name)
    return load(name, root)


def policy_of(name: str) -> Policy:
    """``node-marking`` and ``node_marking`` are the same."""
    key = name.strip().replace("-", "_")
    if key not in POLICIES:
        raise unknown("the policy", name, POLICIES)
    return POLICIES[key]()


def words(text: str) -> list[str]:
    """Names with commas between them, each once."""
    return list(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def layers_of(text: str) -> list[int]:
    """Numbers of layers.

    >>> layers_of("2-4,7")
    [2, 3, 4, 7]
    """
    found: set[int] = set()
    for word in words(text):
        low, dash, high = word.partition("-")
        if not low.isdigit() or (dash and not high.isdigit()):
            raise ValueError(f"Expected numbers of layers such as 4 or 2-5, got {text!r}")
        found |= set(range(int(low), int(high if dash else low) + 1))
    if not found or min(found) < 1:
        raise ValueError(f"Expected at least one number of layers, each >= 1, got {text!r}")
    return sorted(found)
