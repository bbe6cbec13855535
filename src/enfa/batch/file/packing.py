"""Packing integer arrays: differences, one plane of bytes at a time, zstd.

An array is packed in blocks, each on its own: they can be unpacked side by side, and what is unpacked of one lies in the cache
until its numbers are where they belong. In front of the blocks stand their lengths.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from enfa.batch.file._packing import decode, encode, limits

__all__ = ["WIDTHS", "pack", "unpack"]

WIDTHS = (1, 2, 3, 4, 8)  # bytes a number
_BLOCK = 2**17  # numbers
_LENGTH = np.dtype("<u4")
_LEVEL = 3


def pack(array: np.ndarray, delta: bool = True, each: Callable[..., Any] = map) -> tuple[np.ndarray, dict[str, Any]]:
    """``(bytes, how)``. With ``delta`` integers are stored as differences, small where rows lie close.

    ``each``: ``map``, or that of a pool of threads.
    """
    import zstandard  # here, so that plans can be made where it is missing

    flat = array.reshape(-1)
    parts = [np.ascontiguousarray(flat[begin : begin + _BLOCK]) for begin in range(0, len(flat), _BLOCK)]
    each = map if len(parts) < 2 else each
    whole, width = array.dtype.kind in "iu" and flat.size > 0, 0
    if whole:
        found = list(each(lambda part: limits(part, delta), parts))
        low, high = min(ends[0] for ends in found), max(ends[1] for ends in found)
        # a zigzag number below zero is one above 2^63: it takes all eight bytes
        least, most = (0, 0) if delta else (-1, 1)
        width = next(w for w in WIDTHS if w == 8 or (least * 2 ** (8 * w - 1) <= low and high < 2 ** (8 * w - most)))

    def packed(part: np.ndarray) -> bytes:
        if whole:
            planes = np.empty((width, part.size), np.uint8)  # first bytes first: long runs of equal bytes
            encode(part, delta, planes)
        else:
            planes = np.ascontiguousarray(part.view(np.uint8).reshape(part.size, -1).T)
        return zstandard.ZstdCompressor(level=_LEVEL).compress(planes.data)

    frames = list(each(packed, parts))
    lengths = np.array([len(frame) for frame in frames], _LENGTH)
    how = {"dtype": array.dtype.str, "shape": list(array.shape), "delta": delta and whole, "width": width}
    return np.frombuffer(b"".join([lengths.tobytes(), *frames]), np.uint8), how


def unpack(data: np.ndarray, how: dict[str, Any], out: np.ndarray | None = None, each: Callable[..., Any] = map) -> np.ndarray:
    """The array that was packed; ``out``, if given, one of its type and length to write it into.

    Raises a ValueError for bytes that hold another number of numbers than ``how`` says.
    """
    import zstandard  # here, so that plans can be made where it is missing

    dtype, size = np.dtype(how["dtype"]), math.prod(how["shape"])
    width, count = how["width"] or dtype.itemsize, -(-size // _BLOCK)
    first = count * _LENGTH.itemsize
    lengths = np.frombuffer(data[:first].tobytes().ljust(first, b"\0"), _LENGTH)
    ends = np.cumsum(np.append(first, lengths))
    if ends[-1] != len(data):
        raise ValueError(f"Expected {count} blocks of packed bytes, got {len(data)} bytes of others")
    into = np.empty(size, dtype) if out is None else out

    def block(number: int) -> None:
        part, frame = into[number * _BLOCK : (number + 1) * _BLOCK], data[ends[number] : ends[number + 1]].data
        try:
            # asked first: as much as the frame says would be allocated
            held = zstandard.frame_content_size(frame)
            raw = zstandard.ZstdDecompressor().decompress(frame) if held == width * len(part) else b""
        except zstandard.ZstdError as error:
            raise ValueError(f"Expected a zstd frame, got something else ({error})") from error
        if held != width * len(part) or len(raw) != held:
            raise ValueError(f"Expected {width * len(part)} bytes, got {held}")
        planes = np.frombuffer(raw, np.uint8).reshape(width, len(part))
        if how["width"]:
            decode(planes, how["delta"], part)
        else:
            part.view(np.uint8).reshape(len(part), width)[:] = planes.T

    for _ in (map if count < 2 else each)(block, range(count)):
        pass  # whatever a block raises, is raised here
    return into.reshape(how["shape"])
