"""What a compiled dataset depends on: a stored one is used for exactly that, or refused."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np
from torch import Tensor

from enfa.edits import Edits, Policy
from enfa.graphs import GraphSet
from enfa.plan.spec import Spec

__all__ = ["FORMAT", "chained", "fingerprint", "key_of", "params_of", "with_spec"]

FORMAT = 3  # of the stored file


def _arrays(value: GraphSet | Edits) -> list[np.ndarray | None]:
    held = (getattr(value, field.name) for field in fields(value))
    return [array for array in held if array is None or isinstance(array, np.ndarray)]


def fingerprint(graphs: GraphSet, edits: Edits, y: Tensor | None) -> str:
    """A number that tells datasets apart: each edge, its place in the input, each feature, label and edit counts.

    The edits are in it because a policy of one's own is code: its name and parameters may stay when it changes.
    """
    digest = hashlib.blake2b(digest_size=16)
    for array in (*_arrays(graphs), *_arrays(edits), None if y is None else y.numpy()):
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def chained(old: str, new: str) -> str:
    """The fingerprint of a dataset to which another was added."""
    return hashlib.blake2b((old + new).encode(), digest_size=16).hexdigest()


def params_of(policy: Policy) -> dict[str, Any]:
    """A policy's parameters as a JSON header holds them."""
    try:
        return json.loads(json.dumps(policy.params))
    except TypeError as error:
        name = type(policy).__name__
        raise TypeError(f"Expected the parameters of {name} to be plain values ({error})") from error


def key_of(
    graphs: GraphSet, edits: Edits, y: Tensor | None, policy: Policy, spec: Spec, kind: str
) -> dict[str, Any]:
    """Everything that a compiled dataset depends on, as it stands in the header of its file."""
    key: dict[str, Any] = {
        "format": FORMAT,
        "kind": kind,
        "policy": type(policy).__name__,
        "params": params_of(policy),
        "spec": asdict(spec),
        "fingerprint": fingerprint(graphs, edits, y),
    }
    return _sealed(key)


def _sealed(key: dict[str, Any]) -> dict[str, Any]:
    """With a digest of all the rest, which names files."""
    rest = {name: value for name, value in key.items() if name != "digest"}
    digest = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    return {**rest, "digest": digest}


def with_spec(key: dict[str, Any], spec: Spec) -> dict[str, Any]:
    """The key of the same graphs and policy, compiled for another spec."""
    return _sealed({**key, "spec": asdict(spec)})
