"""The header of a stored file: JSON, checked field by field before anything that it describes is unpacked."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, get_type_hints

import numpy as np

from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.forms import LABELS
from enfa.plan.make import KINDS
from enfa.plan.spec import Spec

__all__ = ["CorruptFileError", "Header", "check_header", "read_header"]

_KEY: dict[str, type] = {
    "format": int, "kind": str, "policy": str, "params": dict, "spec": dict, "fingerprint": str, "digest": str,
}  # fmt: skip
_LAYERS = 2**15  # at most, where no array tells how many there are
_RATIO = 2**15  # no zstd frame holds more bytes for each of its own: four of them for a block of 128 KiB


@dataclass(frozen=True)
class Header:
    key: dict[str, Any]
    spec: Spec
    arrays: dict[str, dict[str, Any]]  # how each is packed
    limits: tuple[tuple[int, ...], tuple[int, ...]]
    nodes: int
    affected: list[int]


def _expect(fits: bool, what: str, got: object) -> None:
    if not fits:
        text = repr(got)
        raise CorruptFileError(f"Expected {what}, got {text if len(text) < 80 else text[:77] + '...'}")


def _is(value: object, kind: Any) -> bool:
    """``isinstance``, but True is no number."""
    return isinstance(value, kind) and (not isinstance(value, bool) or kind is bool)


def _whole_numbers(value: object) -> bool:
    return isinstance(value, list) and all(_is(v, int) and 0 <= v < 2**62 for v in value)


def read_header(packed: dict[str, np.ndarray]) -> dict[str, Any]:
    """The JSON among a file's arrays, from which it is taken out; with a key that says what format it has."""
    for name, data in packed.items():
        _expect(data.dtype == np.uint8 and data.ndim == 1, f"packed bytes in '{name}'", f"{data.dtype} {list(data.shape)}")
    _expect("header" in packed, "an array 'header'", sorted(packed))
    try:
        header = json.loads(packed.pop("header").tobytes())
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"Expected JSON in 'header', got something else ({error})") from error
    _expect(isinstance(header, dict), "a JSON object in 'header'", header)
    _expect(isinstance(header.get("key"), dict), "a JSON object in 'header.key'", header.get("key"))
    return header


def _check_packing(name: str, how: object, packed: np.ndarray) -> int:
    """Whether an array can be unpacked as its header says. Returns the bytes that it will take."""
    where = f"'{name}' packed"
    _expect(isinstance(how, dict) and how.keys() == {"dtype", "shape", "delta", "width"}, f"{where} as written", how)
    assert isinstance(how, dict)
    _expect(how["dtype"] in LABELS, f"{where} from one of {', '.join(LABELS)}", how["dtype"])
    shape, width = how["shape"], how["width"]
    _expect(_whole_numbers(shape) and len(shape) <= 2, f"{where} with a shape of one or two sizes", shape)
    dtype = np.dtype(how["dtype"])
    _expect(_is(width, int) and width in (0, 1, 2, 4, 8), f"{where} in 0, 1, 2, 4 or 8 bytes a number", width)
    _expect(not width or dtype.kind in "iu", f"{where} in bytes of integers", how["dtype"])
    _expect(isinstance(how["delta"], bool), f"{where} as differences, true or false", how["delta"])
    size = math.prod(shape)
    # without columns there may be any number of rows, which take no bytes here, but may elsewhere
    _expect(size > 0 or max(shape, default=0) < 2**16, f"{where} with fewer rows where there are no columns", shape)
    _expect(size * (width or dtype.itemsize) <= _RATIO * len(packed), f"{where} into {len(packed)} bytes", shape)
    return size * dtype.itemsize


def _spec(values: Mapping[str, Any]) -> Spec:
    hints = get_type_hints(Spec)
    _expect(values.keys() <= hints.keys(), f"a spec of {', '.join(hints)}", sorted(values.keys() - hints.keys()))
    for f in fields(Spec):
        if f.name in values:
            _expect(_is(values[f.name], hints[f.name]), f"spec.{f.name} to be {f.type}", values[f.name])
    try:
        return Spec(**values)
    except (TypeError, ValueError) as error:
        raise CorruptFileError(f"a spec that does not exist: {error}") from error


def _check_memory(needed: int) -> None:
    """A few bytes can say "a terabyte of zeros". What this machine has no room for is refused before it is asked for."""
    try:
        there = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return
    if needed > there:
        raise ValueError(f"Expected arrays that fit into {there / 2**30:.0f} GiB of memory, got {needed / 2**30:.0f} GiB")


def check_header(header: dict[str, Any], packed: dict[str, np.ndarray]) -> Header:
    """Every field's type and range, and whether all arrays that it describes are there and no others."""
    key = header["key"]
    for name, kind in _KEY.items():
        _expect(_is(key.get(name), kind), f"'header.key.{name}' to be {kind.__name__}", key.get(name))
    _expect(key["kind"] in KINDS, f"'header.key.kind' from {', '.join(KINDS)}", key["kind"])
    spec = _spec(key["spec"])
    _expect(spec.num_layers <= _LAYERS, f"spec.num_layers up to {_LAYERS}", spec.num_layers)
    arrays, limits, nodes, affected = (header.get(name) for name in ("arrays", "limits", "nodes", "affected"))
    _expect(isinstance(arrays, dict), "a JSON object in 'header.arrays'", arrays)
    assert isinstance(arrays, dict)
    for name in sorted(arrays.keys() ^ packed.keys()):
        _expect(False, f"'{name}' both described and there", "described" if name in arrays else "there")
    needed = sum(_check_packing(name, how, packed[name]) for name, how in arrays.items())
    shapes = {name: how["shape"] for name, how in arrays.items()}
    # attributes and marks of edges stand beside one another in all combinations
    attrs, marks = (shapes.get(f"sources.{name}", [1, 1]) for name in ("edge_attr", "edge_marks"))
    kinds = math.prod(attrs[:1]) * math.prod(marks[:1])
    _check_memory(2 * needed + 8 * kinds * (math.prod(attrs[1:]) + math.prod(marks[1:])))
    _expect(
        isinstance(limits, list) and len(limits) == 2 and all(map(_whole_numbers, limits)),
        "two lists of whole numbers in 'header.limits'", limits,
    )  # fmt: skip
    _expect(_whole_numbers([nodes]) and nodes < 2**31, "a whole number below 2^31 in 'header.nodes'", nodes)  # type: ignore[operator]
    _expect(_whole_numbers(affected), "whole numbers in 'header.affected'", affected)
    assert isinstance(limits, list) and isinstance(affected, list) and isinstance(nodes, int)
    return Header(key, spec, arrays, (tuple(limits[0]), tuple(limits[1])), nodes, affected)
