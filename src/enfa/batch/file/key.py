"""What a compiled dataset depends on: a stored one is used for exactly that, or refused."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.header import FORMAT
from enfa.batch.file.program import program_from, program_json
from enfa.edits import Edits, Policy
from enfa.graphs import GraphSet
from enfa.plan.step import Program

__all__ = ["AUTO", "chained", "check_key", "fingerprint", "key_of", "params_of", "sealed", "wanting"]

AUTO = "auto"  # in place of the step from which on no row is shared


def _arrays(value: GraphSet | Edits) -> list[np.ndarray | None]:
    held = (getattr(value, field.name) for field in fields(value))
    return [array for array in held if array is None or isinstance(array, np.ndarray)]


def fingerprint(graphs: GraphSet, edits: Edits, y: Tensor | None, graph_attr: Mapping[str, Tensor]) -> str:
    """A number that tells datasets apart: each edge, its place in the input, each feature, label, attribute and edit counts.

    The edits are in it because a policy of one's own is code: its name and parameters may stay when it changes.
    """
    digest = hashlib.blake2b(digest_size=16)
    names = sorted(graph_attr)
    named = [part for n in names for part in (np.frombuffer(n.encode(), np.uint8), graph_attr[n].numpy())]
    for array in (*_arrays(graphs), *_arrays(edits), None if y is None else y.numpy(), *named):
        if array is None:
            digest.update(b"none")
        else:
            digest.update(f"{array.dtype}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def chained(key: dict[str, Any], added: str) -> dict[str, Any]:
    """The key of a dataset to which another, of that fingerprint, was added."""
    both = hashlib.blake2b((key["fingerprint"] + added).encode(), digest_size=16).hexdigest()
    return sealed({**key, "fingerprint": both})


def params_of(policy: Policy) -> dict[str, Any]:
    """A policy's parameters as a JSON header holds them."""
    try:
        return json.loads(json.dumps(policy.params))
    except TypeError as error:
        name = type(policy).__name__
        raise TypeError(f"Expected the parameters of {name} to be plain values ({error})") from error


def key_of(policy: Policy, program: Program, kind: str, dtype: str | None, fingerprint: str) -> dict[str, Any]:
    """Everything that a compiled dataset depends on, as it stands in the header of its file.

    ``dtype``: what float features were changed to; None: they are as they were.
    """
    return sealed({
        "format": FORMAT,
        "kind": kind,
        "policy": type(policy).__name__,
        "params": params_of(policy),
        "program": program_json(program),
        "dtype": dtype,
        "fingerprint": fingerprint,
    })  # fmt: skip


def wanting(key: dict[str, Any]) -> dict[str, Any]:
    """The key of a file in which sharing may end at any step: where it does is found by planning some of the graphs, which
    looking a file up should not have to wait for."""
    return sealed({**key, "program": {**key["program"], "unshared": AUTO}})


def sealed(key: dict[str, Any]) -> dict[str, Any]:
    """With a digest of all the rest, which names files."""
    rest = {name: value for name, value in key.items() if name != "digest"}
    digest = hashlib.blake2b(json.dumps(rest, sort_keys=True).encode(), digest_size=8).hexdigest()
    return {**rest, "digest": digest}


def check_key(path: Path | str, key: dict[str, Any], expect: dict[str, Any]) -> None:
    """Whether a file is of this version, and what is wanted."""
    if key.get("format") != FORMAT:
        raise ValueError(
            f"Expected a file of format {FORMAT}, got {path} of format {key.get('format')!r}, which another version of enfa "
            f"has written: delete it, and compile again"
        )
    names = ("kind", "policy", "params", "program", "dtype", "fingerprint")
    program = expect.get("program")
    if program is not None and program.get("unshared") == AUTO and isinstance(key.get("program"), dict):  # whatever it came to
        expect = {**expect, "program": {**program, "unshared": key["program"].get("unshared")}}
    different = [n for n in names if n in expect and key.get(n) != expect[n]]
    if different:
        what = "; ".join(f"{n}: {_said(n, key.get(n))} stored, {_said(n, expect[n])} wanted" for n in different)
        raise ValueError(f"{path} was compiled for something else; delete it or choose another: {what}")


def _said(name: str, value: Any) -> str:
    """A program by its steps, one behind the other, where it is one."""
    if name != "program" or not isinstance(value, dict):
        return repr(value)
    try:
        steps = program_from(value, []).steps
    except CorruptFileError:
        return repr(value)
    rest = [f"{key}={part!r}" for key, part in sorted(value.items()) if key != "steps"]
    return "; ".join([*(f"{step.kind} {step}" for step in steps), *rest])
