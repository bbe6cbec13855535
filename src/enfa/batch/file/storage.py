"""One file per compiled dataset.

A file is a safetensors image (packed arrays, and a JSON header as one more of them) and behind it a trailer: eight
bytes that say what it is and a BLAKE2 digest of all that stands before. There is no pickle. A crash in writing leaves
the old file or none; a file that was cut short, or in which a single bit differs, is refused. One that was written
with another digest may hold wrong numbers, but none that point outside of its arrays (``enfa.batch.file.check``).
"""

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from enfa import edits as own
from enfa.ahead import ready
from enfa.atomic import write_atomically
from enfa.batch.dataset import CompiledDataset
from enfa.batch.file.check import check_arrays, graphs_from
from enfa.batch.file.corrupt import CorruptFileError
from enfa.batch.file.header import check_header, read_header
from enfa.batch.file.image import TRAILER, packed_in, trailer_of
from enfa.batch.file.key import check_key, params_of
from enfa.batch.file.packing import pack, unpack
from enfa.batch.file.shapes import check_shapes
from enfa.edits import Policy
from enfa.graphs.tensors import is_kept, of_type
from enfa.plan.keys.intern import KeyTable
from enfa.plan.rows.distinct import StepRows
from enfa.plan.slicing.sources import Sources
from enfa.plan.table import Plan

__all__ = ["file_parts", "load_arrays", "load_compiled", "save_compiled", "stored_bytes"]

_LITTLE = 1 << 20  # packed bytes: unpacked before threads would have started


def _arrays(compiled: CompiledDataset) -> dict[str, np.ndarray]:
    """Every array of a compiled dataset by name."""
    found: dict[str, Any] = {f"graph_attr.{name}": value.numpy() for name, value in compiled.graph_attr.items()}
    if compiled.y is not None:
        if not is_kept(compiled.y):  # not found out when the file is read
            raise TypeError(f"Expected labels of a type that files hold, got {of_type(compiled.y)}")
        found["y"] = compiled.y.numpy()
    if compiled.rows is not None and compiled.sources is not None:
        found |= {f"sources.{name}": value for name, value in compiled.sources.arrays.items()}
        for number, rows in enumerate(compiled.rows):
            for field in fields(rows):
                name, value = f"step{number}.{field.name}", getattr(rows, field.name)
                found[name] = value
                if isinstance(value, KeyTable):
                    parts = value.halves()
                    parts["length"] = np.diff(parts.pop("end"), prepend=np.int32(0))
                    found |= {f"{name}.{part}": array for part, array in parts.items()}
    if compiled.graphs is not None:
        graphs, edits = compiled.graphs
        found |= {f"graphs.{field.name}": getattr(graphs, field.name) for field in fields(graphs)}
        found |= {f"edits.{field.name}": getattr(edits, field.name) for field in fields(edits)}
    return {name: array for name, array in found.items() if isinstance(array, np.ndarray)}


def _image(compiled: CompiledDataset) -> tuple[bytes, dict[str, int]]:
    """The file's bytes without the trailer, and the packed size of every array."""
    packed, how = {}, {}
    ready("file")  # the kernels
    with _each(_LITTLE) as each:
        for name, array in _arrays(compiled).items():
            small = name.endswith((".length", ".b", ".count"))  # small numbers without an order: differences would not help
            packed[name], how[name] = pack(array, not small, each)
    header = {
        "key": compiled.key,
        "arrays": how,
        "needs": sorted(compiled.program.needs),
        "nodes": int(compiled.node_ptr[-1]),  # which no array need have a number for each of
    }
    sizes = {name: len(data) for name, data in packed.items()}
    packed["header"] = np.frombuffer(json.dumps(header, sort_keys=True).encode(), np.uint8)
    return save(packed), sizes


def stored_bytes(compiled: CompiledDataset) -> dict[str, int]:
    """Bytes that :func:`save_compiled` would write, array by array; ``total`` is the size of the file."""
    image, sizes = _image(compiled)
    return {**sizes, "total": len(image) + TRAILER}


def file_parts(compiled: CompiledDataset) -> tuple[bytes, bytes]:
    """The bytes of its file, one part behind the other."""
    image, _ = _image(compiled)
    return image, trailer_of(image)


def save_compiled(compiled: CompiledDataset, path: str | Path) -> None:
    """Write atomically: the old file, or the whole new one."""
    write_atomically(Path(path), file_parts(compiled))


@contextmanager
def _naming(path: Path | str) -> Iterator[None]:
    """Errors say which file it is."""
    try:
        yield
    except CorruptFileError as error:
        raise CorruptFileError(f"{path}: damaged: {error}") from error
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _policy(key: dict[str, Any]) -> Policy | None:
    """The policy that a header names, if it is one of this package's."""
    cls = getattr(own, key["policy"], None)
    if isinstance(cls, type) and issubclass(cls, Policy) and cls.name() in own.POLICIES:
        try:
            return own.policy_from(cls.name(), **key["params"])
        except (ValueError, TypeError, RecursionError) as error:
            raise CorruptFileError(f"'header.key.params' do not make a policy: {error}") from error
    return None


@contextmanager
def _each(size: int) -> Iterator[Callable[..., Any]]:
    """``map`` for what is done to blocks, in threads where there are so many bytes that it pays."""
    if size < _LITTLE:
        yield map
        return
    with ThreadPoolExecutor() as pool:
        yield pool.map


def _unpacked(
    packed: dict[str, np.ndarray], how: dict[str, Any], tables: dict[str, KeyTable] | None = None
) -> dict[str, np.ndarray]:
    """``tables``: where the arrays of some tables of keys belong."""
    rooms = {f"{name}.{part}": room for name, table in (tables or {}).items() for part, room in table.halves().items()}
    found = {}
    ready("file")
    with _each(sum(data.nbytes for data in packed.values())) as each:
        for name, data in packed.items():
            try:
                found[name] = unpack(data, how[name], rooms.get(name.replace(".length", ".end")), each)
            except ValueError as error:
                raise CorruptFileError(f"'{name}': {error}") from error
    return found


def _tables(how: dict[str, Any]) -> dict[str, KeyTable]:
    """By name, tables of keys of the sizes that a header says, with nothing in them so far."""
    names = [name.removesuffix(".own") for name in how if name.startswith("step") and name.endswith(".own")]
    return {name: KeyTable.of_size(how[f"{name}.own"]["shape"][0], how[f"{name}.a"]["shape"][0]) for name in names}


def _rows(arrays: dict[str, np.ndarray], tables: dict[str, KeyTable], number: int) -> StepRows:
    """The rows of one step."""
    names = {field.name: f"step{number}.{field.name}" for field in fields(StepRows)}
    return StepRows(**{field: tables.get(name, arrays.get(name)) for field, name in names.items()})  # type: ignore[arg-type]


def load_arrays(path: str | Path, data: bytes, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Some arrays of a file, given its bytes: those that it has of ``names``. Nothing else is unpacked."""
    packed = packed_in(path, data)
    with _naming(path):
        header = check_header(read_header(packed), packed)
        check_shapes(header)
        return _unpacked({name: packed[name] for name in names if name in packed}, header.arrays)


def load_compiled(
    path: str | Path,
    *,
    expect: dict[str, Any] | None = None,
    policy: Policy | None = None,
    cls: type[Plan] = Plan,
    needs: frozenset[tuple[int, str]] | None = None,
    data: bytes | None = None,
) -> CompiledDataset:
    """Read what ``compiled.save(path)`` wrote.

    Raises :class:`CorruptFileError` for a damaged file and a ValueError that says what differs for one of another
    format, or of other graphs, policy or steps than ``expect``. A policy of one's own must be given to ``extend`` later.
    ``cls``: what plans are made as; ``needs``: what the model reads beside the tables, where it is not the one of the file;
    ``data``: the file's bytes, where it lies elsewhere than on a disk.
    """
    if data is None and Path(path).is_dir():
        raise ValueError(f"Expected a file of compiled.save, got the folder {path}: enfa.ShardedDataset.open reads shards")
    packed = packed_in(path, Path(path).read_bytes() if data is None else data)
    with _naming(path):
        raw = read_header(packed)
    wanted = dict(expect or {})
    if policy is not None:
        wanted |= {"policy": type(policy).__name__, "params": params_of(policy)}
    check_key(path, raw["key"], wanted)
    with _naming(path):
        header = check_header(raw, packed)
        check_shapes(header)
        tables = _tables(header.arrays)
        arrays = _unpacked(packed, header.arrays, tables)
        check_arrays(header, arrays)
        for table in tables.values():
            ends = table.halves()["end"]  # lengths, so far
            np.cumsum(ends, out=ends)
        policy = policy or _policy(header.key)
    prefix, key = "graph_attr.", header.key
    program = header.program if needs is None else replace(header.program, needs=needs)
    attr = {name.removeprefix(prefix): torch.from_numpy(a) for name, a in arrays.items() if name.startswith(prefix)}
    y = torch.from_numpy(arrays["y"]) if "y" in arrays else None
    graphs = graphs_from(arrays) if "graphs.node_ptr" in arrays else None
    if "sources.node_ptr" not in arrays:
        return CompiledDataset(key, policy, program, cls, graphs=graphs, y=y, graph_attr=attr)
    given = {name.removeprefix("sources."): array for name, array in arrays.items() if name.startswith("sources.")}
    sources = Sources(program, **{"edge_attr": None, "root": None, **given})
    rows = [_rows(arrays, tables, number) for number in range(len(program.shared))]
    return CompiledDataset(key, policy, program, cls, rows=rows, sources=sources, graphs=graphs, y=y, graph_attr=attr)
