"""Packing integer arrays: differences, one plane of bytes at a time, zstd."""

import math
from typing import Any

import numpy as np

from enfa.batch.file._packing import decode, encode, limits

__all__ = ["pack", "unpack"]

_LEVEL = 3


def pack(array: np.ndarray, delta: bool = True) -> tuple[np.ndarray, dict[str, Any]]:
    """``(bytes, how)``. With ``delta`` integers are stored as differences, small where rows lie close."""
    import zstandard  # here, so that plans can be made where it is missing

    how: dict[str, Any] = {"dtype": array.dtype.str, "shape": list(array.shape), "delta": False, "width": 0}
    flat = np.ascontiguousarray(array).reshape(-1)
    if array.dtype.kind in "iu" and flat.size:
        how["delta"] = delta
        low, high = limits(flat, delta)
        # a zigzag number below zero is one above 2^63: it takes all eight bytes
        least = 0 if delta else -1
        width = next(w for w in (1, 2, 4, 8) if w == 8 or (least * 2 ** (8 * w - 1) <= low and high < 2 ** (8 * w - 1)))
        planes = np.empty((width, flat.size), np.uint8)  # first bytes first: long runs of equal bytes
        encode(flat, delta, planes)
        how["width"] = width
    else:
        raw = flat.view(np.uint8).reshape(flat.size, -1) if flat.size else np.zeros((0, 1), np.uint8)
        planes = np.ascontiguousarray(raw.T)
    data = zstandard.ZstdCompressor(level=_LEVEL, threads=-1).compress(planes.data if planes.size else b"")
    return np.frombuffer(data, np.uint8), how


def unpack(data: np.ndarray, how: dict[str, Any]) -> np.ndarray:
    """The array that was packed. Raises a ValueError for bytes that hold another number of numbers than ``how`` says."""
    import zstandard  # here, so that plans can be made where it is missing

    dtype, shape = np.dtype(how["dtype"]), tuple(how["shape"])
    size = math.prod(shape)
    stored = np.dtype(f"<i{how['width']}") if how["width"] else dtype
    try:
        # asked first: as much as the frame says would be allocated
        held = zstandard.frame_content_size(data.data)
        raw = zstandard.ZstdDecompressor().decompress(data.data) if held == size * stored.itemsize else b""
    except zstandard.ZstdError as error:
        raise ValueError(f"Expected a zstd frame, got something else ({error})") from error
    if held != size * stored.itemsize or len(raw) != held:
        raise ValueError(f"Expected {size * stored.itemsize} bytes, got {held}")
    if not how["width"]:
        planes = np.frombuffer(raw, np.uint8).reshape(dtype.itemsize, size)
        return planes.T.copy().reshape(-1).view(dtype).reshape(shape)
    out = np.empty(size, dtype)
    decode(np.frombuffer(raw, np.uint8).reshape(stored.itemsize, size), how["delta"], out)
    return out.reshape(shape)
