"""The header of a stored file: JSON, checked field by field before anything that it describes is unpacked."""

import json
import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from enfa.batch.file.corrupt import CorruptFileError, expect, is_a, whole_numbers
from enfa.batch.file.forms import LABELS, MOST_AXES
from enfa.batch.file.packing import WIDTHS
from enfa.batch.file.program import program_from
from enfa.plan.check import KINDS
from enfa.plan.step import Program

__all__ = ["FORMAT", "Header", "check_header", "read_header"]

FORMAT = 6  # of the stored file
_KEY: dict[str, type] = {
    "format": int, "kind": str, "policy": str, "params": dict, "program": dict, "fingerprint": str, "digest": str,
}  # fmt: skip
_DTYPES = (None, "float32", "float64")
_RATIO = 2**15  # no zstd frame holds more bytes for each of its own: four of them for a block of 128 KiB


@dataclass(frozen=True)
class Header:
    key: dict[str, Any]
    program: Program
    arrays: dict[str, dict[str, Any]]  # how each is packed
    nodes: int


def read_header(packed: dict[str, np.ndarray]) -> dict[str, Any]:
    """The JSON among a file's arrays, from which it is taken out; with a key that says what format it has."""
    expect("header" in packed, "an array 'header'", sorted(packed))
    try:
        header = json.loads(packed.pop("header").tobytes())
    except (ValueError, RecursionError) as error:
        raise CorruptFileError(f"Expected JSON in 'header', got something else ({error})") from error
    expect(isinstance(header, dict), "a JSON object in 'header'", header)
    expect(isinstance(header.get("key"), dict), "a JSON object in 'header.key'", header.get("key"))
    return header


def _check_packing(name: str, how: Any, packed: np.ndarray) -> int:
    """Whether an array can be unpacked as its header says. Returns the bytes that it will take."""
    where = f"'{name}' packed"
    expect(isinstance(how, dict) and how.keys() == {"dtype", "shape", "delta", "width"}, f"{where} as written", how)
    expect(how["dtype"] in LABELS, f"{where} from one of {', '.join(LABELS)}", how["dtype"])
    shape, width = how["shape"], how["width"]
    expect(whole_numbers(shape) and len(shape) <= MOST_AXES, f"{where} with a shape of up to {MOST_AXES} sizes", shape)
    dtype = np.dtype(how["dtype"])
    expect(is_a(width, int) and width in (0, *WIDTHS), f"{where} in 0, 1, 2, 3, 4 or 8 bytes a number", width)
    expect(not width or dtype.kind in "iu", f"{where} in bytes of integers", how["dtype"])
    expect(isinstance(how["delta"], bool), f"{where} as differences, true or false", how["delta"])
    size = math.prod(shape)
    # without columns there may be any number of rows, which take no bytes here, but may elsewhere
    expect(size > 0 or max(shape, default=0) < 2**16, f"{where} with fewer rows where there are no columns", shape)
    expect(size * (width or dtype.itemsize) <= _RATIO * len(packed), f"{where} into {len(packed)} bytes", shape)
    return size * dtype.itemsize


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
        expect(is_a(key.get(name), kind), f"'header.key.{name}' to be {kind.__name__}", key.get(name))
    expect(key["kind"] in KINDS, f"'header.key.kind' from {', '.join(KINDS)}", key["kind"])
    dtype = key.get("dtype")
    expect(dtype in _DTYPES, "'header.key.dtype' to be float32, float64 or null", dtype)
    program = program_from(key["program"], header.get("needs"))
    arrays, nodes = header.get("arrays"), header.get("nodes")
    expect(isinstance(arrays, dict), "a JSON object in 'header.arrays'", arrays)
    assert isinstance(arrays, dict)
    for name in sorted(arrays.keys() ^ packed.keys()):
        expect(False, f"'{name}' both described and there", "described" if name in arrays else "there")
    needed = sum(_check_packing(name, how, packed[name]) for name, how in arrays.items())
    shapes = {name: how["shape"] for name, how in arrays.items()}
    # attributes and marks of edges stand beside one another in all combinations
    attrs, marks = (shapes.get(f"sources.{name}", [1, 1]) for name in ("edge_attr", "edge_marks"))
    kinds = math.prod(attrs[:1]) * math.prod(marks[:1])
    _check_memory(2 * needed + 8 * kinds * (math.prod(attrs[1:]) + math.prod(marks[1:])))
    expect(whole_numbers([nodes]) and nodes < 2**31, "a whole number below 2^31 in 'header.nodes'", nodes)  # type: ignore[operator]
    assert isinstance(nodes, int)
    return Header(key, program, arrays, nodes)
