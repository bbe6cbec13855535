"""One file per compiled dataset.

A file is a safetensors image (packed arrays, and a JSON header as one more of them) and behind it a trailer: eight
bytes that say what it is and a BLAKE2 digest of all that stands before. There is no pickle. A crash in writing leaves
the old file or none; a file that was cut short, or in which a single bit differs, is refused. One that was written
with another digest may hold wrong numbers, but none that point outside of its arrays (``enfa.batch.check_file``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.numpy import load, save

from enfa import edits as own
from enfa.batch.check_file import check_arrays, check_shapes
from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.atomic import write_atomically
from enfa.batch.file.packing import pack, unpack
from enfa.batch.header import CorruptFileError, check_header, read_header
from enfa.batch.key import FORMAT, params_of
from enfa.edits import Edits, Policy
from enfa.graphs import GraphSet
from enfa.plan.distinct import DistinctLayer, DistinctRows
from enfa.plan.intern import KeyTable
from enfa.plan.slice import Sources

__all__ = ["CorruptFileError", "load_compiled", "save_compiled", "stored_bytes"]

_MAGIC = b"ENFA0001"
_TRAILER = len(_MAGIC) + 32


def _table_arrays(table: KeyTable) -> dict[str, np.ndarray]:
    return {"own": table.own, "length": np.diff(table.item_ptr), "a": table.a, "b": table.b}


def _arrays(compiled: CompiledDataset) -> dict[str, np.ndarray]:
    """Every array of a compiled dataset by name."""
    found: dict[str, np.ndarray] = {}
    for field in fields(Sources):
        value = getattr(compiled.sources, field.name)
        if isinstance(value, np.ndarray):
            found[f"sources.{field.name}"] = value
    if compiled.y is not None:
        found["y"] = compiled.y.numpy()
    if compiled.rows is not None:
        rows = compiled.rows
        tables = {"start": rows.start, "deltas": rows.deltas}
        if rows.nodes is not None:
            tables["nodes"] = rows.nodes
        for i, layer in enumerate(rows.layers):
            tables |= {f"layer{i}.{name}": table for name, table in layer.tables.items()}
        found |= {f"layer{i}.node_context": array for i, array in enumerate(rows.node_context)}
        for name, table in tables.items():
            found |= {f"{name}.{part}": array for part, array in _table_arrays(table).items()}
        names = ("base_ptr", "base_row", "sub_delta", "graph_rows", "sub_root", "node_sum")
        found |= {name: getattr(rows, name) for name in names}
    if compiled.graphs is not None:
        graphs, edits = compiled.graphs
        found |= {f"graphs.{f.name}": getattr(graphs, f.name) for f in fields(graphs)}
        found |= {f"edits.{f.name}": getattr(edits, f.name) for f in fields(edits)}
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}


def _image(compiled: CompiledDataset) -> tuple[bytes, dict[str, int]]:
    """The file's bytes without the trailer, and the packed size of every array."""
    packed, how = {}, {}
    for name, array in _arrays(compiled).items():
        small = name.endswith((".length", ".b"))  # small numbers without an order: differences would not help
        packed[name], how[name] = pack(array, delta=not small)
    header = {
        "key": compiled.key,
        "arrays": how,
        "limits": compiled.sources.limits,
        "nodes": int(compiled.sources.node_ptr[-1]),  # which no array need have a number for each of
        "affected": compiled.rows.affected if compiled.rows is not None else [],
    }
    sizes = {name: len(data) for name, data in packed.items()}
    packed["header"] = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
    return save(packed), sizes


def stored_bytes(compiled: CompiledDataset) -> dict[str, int]:
    """Bytes that :func:`save_compiled` would write, array by array; ``total`` is the size of the file."""
    image, sizes = _image(compiled)
    return {**sizes, "total": len(image) + _TRAILER}


def save_compiled(compiled: CompiledDataset, path: str | Path) -> None:
    """Write atomically: the old file, or the whole new one."""
    image, _ = _image(compiled)
    trailer = _MAGIC + hashlib.blake2b(image, digest_size=32).digest()
    write_atomically(Path(path), (image, trailer))


def _read(path: Path) -> dict[str, np.ndarray]:
    data = path.read_bytes()
    if len(data) < _TRAILER or data[-_TRAILER : -_TRAILER + len(_MAGIC)] != _MAGIC:
        raise CorruptFileError(f"{path}: not a compiled dataset of this version, or cut short ({len(data)} bytes)")
    image = memoryview(data)[:-_TRAILER]
    if hashlib.blake2b(image, digest_size=32).digest() != data[-32:]:
        raise CorruptFileError(f"{path}: damaged: its checksum does not match its {len(data)} bytes")
    try:
        return load(bytes(image))
    except (SafetensorError, KeyError, ValueError, TypeError) as error:
        raise CorruptFileError(f"{path}: damaged: no arrays as they were written ({error})") from error


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Errors say which file it is."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(f"{path}: damaged: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _differences(key: dict[str, Any], expect: dict[str, Any]) -> list[str]:
    names = ("format", "kind", "policy", "params", "spec", "fingerprint")
    different = [n for n in names if n in expect and key.get(n) != expect[n]]
    return [f"{n}: {key.get(n)!r} stored, {expect[n]!r} wanted" for n in different]


def _policy(key: dict[str, Any]) -> Policy | None:
    """The policy that a header names, if it is one of this package's."""
    cls = getattr(own, key["policy"], None)
    if isinstance(cls, type) and issubclass(cls, Policy) and cls.name() in own.POLICIES:
        try:
            return own.policy_from(cls.name(), **key["params"])
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptFileError(f"'header.key.params' do not make a policy: {error}") from error
    return None


def _unpacked(packed: dict[str, np.ndarray], how: dict[str, Any]) -> dict[str, np.ndarray]:
    def one(name: str) -> np.ndarray:
        try:
            return unpack(packed[name], how[name])
        except ValueError as error:
            raise CorruptFileError(f"'{name}': {error}") from error

    with ThreadPoolExecutor() as pool:
        return dict(zip(packed, pool.map(one, packed)))


def load_compiled(
    path: str | Path, *, expect: dict[str, Any] | None = None, policy: Policy | None = None
) -> CompiledDataset:
    """Read what ``compiled.save(path)`` wrote.

    Raises :class:`CorruptFileError` for a damaged file and a ValueError that says what differs for one of another
    format, or of other graphs, policy or spec than ``expect``. A policy of one's own must be given to ``extend`` later.
    """
    path = Path(path)
    packed = _read(path)
    with _naming(path):
        raw = read_header(packed)
    wanted = {"format": FORMAT, **(expect or {})}
    if policy is not None:
        wanted |= {"policy": type(policy).__name__, "params": params_of(policy)}
    different = _differences(raw["key"], wanted)
    if different:
        what = "; ".join(different)
        raise ValueError(f"{path} was compiled for something else; delete it or choose another: {what}")
    with _naming(path):
        header = check_header(raw, packed)
        check_shapes(header)
        arrays = _unpacked(packed, header.arrays)
        check_arrays(header, arrays)
        policy = policy or _policy(header.key)

    def table(name: str) -> KeyTable | None:
        if f"{name}.own" not in arrays:
            return None
        parts = [arrays[f"{name}.{part}"] for part in ("own", "length", "a", "b")]
        ptr = np.concatenate([[0], np.cumsum(parts[1], dtype=np.int64)])
        return KeyTable.from_arrays(parts[0], ptr, parts[2], parts[3])

    def required(name: str) -> KeyTable:
        found = table(name)
        assert found is not None
        return found

    spec, limits = header.spec, header.limits
    values = {f.name: arrays.get(f"sources.{f.name}") for f in fields(Sources) if f.name not in ("spec", "limits")}
    sources = Sources(spec=spec, limits=limits, **values)  # type: ignore[arg-type]
    rows, graphs = None, None
    if "base_row" in arrays:
        layers = [
            DistinctLayer(
                required(f"layer{i}.rows"), *(table(f"layer{i}.{n}") for n in ("context", "encoder", "mix"))
            )
            for i in range(spec.num_layers)
        ]
        rows = DistinctRows(
            required("start"), layers, required("deltas"), arrays["base_ptr"], arrays["base_row"], arrays["sub_delta"],
            arrays["graph_rows"], header.affected, arrays.get("sub_root"),
            [arrays[f"layer{i}.node_context"] for i in range(spec.num_layers) if spec.context is not None],
            table("nodes"), arrays.get("node_sum"),
        )  # fmt: skip
    else:
        graphs = (
            GraphSet(**{f.name: arrays.get(f"graphs.{f.name}") for f in fields(GraphSet) if f.name != "first"}),  # type: ignore[arg-type]
            Edits(**{f.name: arrays.get(f"edits.{f.name}") for f in fields(Edits)}),  # type: ignore[arg-type]
        )
    y = torch.from_numpy(arrays["y"]) if "y" in arrays else None
    return CompiledDataset(header.key, policy, spec, header.key["kind"], sources, rows, graphs, y)
