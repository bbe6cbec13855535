"""The outermost layer of a stored file: a safetensors image of packed bytes, and a trailer by which damage is told."""

import hashlib
import json
from pathlib import Path

import numpy as np

from enfa.batch.file.corrupt import CorruptFileError, expect, whole_numbers

__all__ = ["TRAILER", "packed_in", "trailer_of"]

_MAGIC = b"ENFA0001"
TRAILER = len(_MAGIC) + 32  # bytes


def trailer_of(image: bytes | memoryview) -> bytes:
    return _MAGIC + hashlib.blake2b(image, digest_size=32).digest()


def packed_in(path: Path | str, data: bytes) -> dict[str, np.ndarray]:
    """The packed bytes of every array, not copied, given those of the file. Raises a CorruptFileError for any other file."""
    if len(data) < TRAILER or data[-TRAILER : -TRAILER + len(_MAGIC)] != _MAGIC:
        raise CorruptFileError(f"{path}: not a compiled dataset of this version, or cut short ({len(data)} bytes)")
    image = memoryview(data)[:-TRAILER]
    if trailer_of(image) != data[-TRAILER:]:
        raise CorruptFileError(f"{path}: damaged: its checksum does not match its {len(data)} bytes")
    try:
        return _views(image)
    except (KeyError, ValueError, TypeError, AttributeError, RecursionError) as error:
        raise CorruptFileError(f"{path}: damaged: no arrays as they were written ({error})") from error


def _views(image: memoryview) -> dict[str, np.ndarray]:
    """The arrays as they lie in an image, one behind the other. The reader of safetensors would copy each of them twice."""
    body = 8 + int.from_bytes(image[:8], "little")
    expect(body <= len(image), f"a header of up to {len(image)} bytes", body)
    found, data, at = {}, np.frombuffer(image[body:], np.uint8), 0
    for name, said in json.loads(bytes(image[8:body])).items():
        begin, end = ends = said["data_offsets"]
        fits = whole_numbers(ends) and begin == at <= end <= len(data)
        expect(fits and said["dtype"] == "U8" and said["shape"] == [end - begin], f"packed bytes in '{name}'", said)
        found[name], at = data[begin:end], end
    expect(at == len(data), f"{at} bytes of arrays", len(data))
    return found
