"""Stored files that have been changed on purpose: whatever is put into them, the digest is right."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load, save

from enfa.batch.file.packing import pack, unpack

__all__ = ["parts_of", "single_changes", "write", "write_image", "write_packed"]

_TRAILER = 40
_packed: dict[int, tuple[np.ndarray, dict[str, Any], np.ndarray]] = {}  # by id, with the array itself, which so stays


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
