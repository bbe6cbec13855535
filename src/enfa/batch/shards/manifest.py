"""The manifest of a sharded dataset: which shards there are, and all that one must know to open it without reading them.

``manifest.json`` lies beside ``shard-00000.enfa``, ``shard-00001.enfa``, ..., each an ordinary file of a compiled dataset. It
is written when all shards are there. Until then ``unfinished.json``, of the same form, lists those that are. Nothing in it
depends on when, where or by how many processes it was written.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from enfa.batch.file.corrupt import CorruptFileError, expect, is_a, whole_numbers
from enfa.batch.file.header import FORMAT as FILE_FORMAT
from enfa.batch.file.program import program_from
from enfa.batch.shards.folder import Folder
from enfa.plan.check import KINDS
from enfa.plan.step import Program

__all__ = ["MANIFEST", "UNFINISHED", "Manifest", "Shard", "shard_name"]

FORMAT = 1
MANIFEST, UNFINISHED = "manifest.json", "unfinished.json"
_KEY = {"format": int, "kind": str, "policy": str, "params": dict, "program": dict}


def shard_name(number: int) -> str:
    """
    >>> shard_name(3)
    'shard-00003.enfa'
    """
    return f"shard-{number:05d}.enfa"


@dataclass(frozen=True)
class Shard:
    """One file, and what is in it."""

    file: str
    graphs: int
    bytes: int
    sha256: str  # of the file
    fingerprint: str  # of its graphs, labels, attributes and edits, as its own key has it
    nodes: int
    subgraphs: int
    pairs: int  # (subgraph, node)
    rows: list[int]  # of the tables of its steps; none behind the step from which on no rows are shared


@dataclass(frozen=True)
class Manifest:
    """What holds for all shards, and the shards in the order of their graphs.

    ``key``: as that of each shard (:func:`enfa.batch.file.key.key_of`), without the fingerprint and the digest. ``columns``,
    ``labels`` and ``attributes`` were decided on the first shard, and all others have the same: by name ``[dtype, shape of one
    row]``; ``labels`` is None where graphs have none.
    """

    key: dict[str, Any]
    needs: list[list[Any]]  # what the model reads beside the tables: (number of a step, name)
    columns: dict[str, list[Any]]  # "x", and "edge_attr" where there is any
    labels: list[Any] | None
    attributes: dict[str, list[Any]]
    size: int | None  # graphs of each shard but the last; None where they were shared out evenly over a number of shards
    shards: list[Shard]
    format: int = FORMAT

    @property
    def graphs(self) -> int:
        return sum(shard.graphs for shard in self.shards)

    @property
    def fingerprint(self) -> str:
        """Of all shards together."""
        every = "".join(shard.fingerprint for shard in self.shards)
        return hashlib.blake2b(every.encode(), digest_size=16).hexdigest()

    @property
    def program(self) -> Program:
        return program_from(self.key["program"], self.needs)

    def text(self) -> bytes:
        """As the file holds it: a line for everything, and one for every shard."""
        rest = {name: value for name, value in asdict(self).items() if name not in ("shards", "format")}
        head = {"format": self.format, "graphs": self.graphs, "fingerprint": self.fingerprint, **rest}
        lines = [f" {json.dumps(name)}: {json.dumps(value, sort_keys=True)}," for name, value in head.items()]
        shards = ",\n  ".join(json.dumps(asdict(shard)) for shard in self.shards)
        return "\n".join(["{", *lines, ' "shards": [', f"  {shards}", " ]", "}", ""]).encode()

    def write(self, folder: Folder, name: str = MANIFEST) -> None:
        folder.write(name, [self.text()])

    @classmethod
    def read(cls, folder: Folder, name: str = MANIFEST) -> Manifest:
        """Raises FileNotFoundError where there is none, and says so where shards lie there without one."""
        try:
            data = folder.read(name)
        except FileNotFoundError as error:
            unfinished = ": compiling it has not come to its end; do it again, and it goes on" if name == MANIFEST and (
                UNFINISHED in folder.names()) else ""  # fmt: skip
            raise FileNotFoundError(f"There is no {name} in {folder.url}{unfinished}") from error
        try:
            found = cls.from_text(data)
            files = [shard.file for shard in found.shards]
            whole = name != MANIFEST or (files and files == [shard_name(number) for number in range(len(files))])
            expect(bool(whole), "all shards, from the first to the last", files)
            return found
        except CorruptFileError as error:
            raise CorruptFileError(f"{folder.path(name)}: damaged: {error}") from error
        except ValueError as error:
            raise ValueError(f"{folder.path(name)}: {error}") from error

    @classmethod
    def from_text(cls, data: bytes) -> Manifest:
        """Checked field by field, as the headers of files are."""
        try:
            given = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise CorruptFileError(f"Expected JSON, got something else ({error})") from error
        expect(is_a(given, dict), "a JSON object", given)
        if given.get("format") != FORMAT:
            raise ValueError(f"Expected a manifest of format {FORMAT}, got {given.get('format')!r}, of another version of enfa")
        names = {f.name for f in fields(cls)} | {"graphs", "fingerprint"}
        expect(given.keys() == names, f"the fields {', '.join(sorted(names))}", sorted(given))
        expect(is_a(given["shards"], list), "a list in 'shards'", given["shards"])
        rest = {name: value for name, value in given.items() if name not in ("shards", "graphs", "fingerprint")}
        found = cls(**rest, shards=[_shard(number, value) for number, value in enumerate(given["shards"])])
        _check(found)
        for name in ("graphs", "fingerprint"):
            expect(given[name] == getattr(found, name), f"'{name}' to be {getattr(found, name)}, as of the shards", given[name])
        return found


def _shard(number: int, value: Any) -> Shard:
    where = f"'shards[{number}]'"
    names = [f.name for f in fields(Shard)]
    expect(is_a(value, dict) and sorted(value) == sorted(names), f"{where} of {', '.join(names)}", value)
    counts = [value[name] for name in ("graphs", "bytes", "nodes", "subgraphs", "pairs")]
    expect(whole_numbers(counts) and value["graphs"] > 0, f"counts in {where}", counts)
    expect(whole_numbers(value["rows"]), f"numbers of rows in {where}", value["rows"])
    # a name of its own folder: nothing else is ever read
    named = is_a(value["file"], str) and re.fullmatch(r"shard-\d{5,9}\.enfa", value["file"])
    expect(bool(named), f"the name of a shard in {where}", value["file"])
    for name, digits in (("sha256", 64), ("fingerprint", 32)):
        fits = is_a(value[name], str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value[name])
        expect(bool(fits), f"{digits} hexadecimal digits in {where}.{name}", value[name])
    return Shard(**value)


def _form(value: Any) -> bool:
    """A dtype and the shape of one row."""
    return is_a(value, list) and len(value) == 2 and is_a(value[0], str) and whole_numbers(value[1])


def _check(found: Manifest) -> None:
    key = found.key
    expect(is_a(key, dict) and key.keys() == {*_KEY, "dtype"}, f"'key' of {', '.join(_KEY)} and dtype", key)
    for name, kind in _KEY.items():
        expect(is_a(key[name], kind), f"'key.{name}' to be {kind.__name__}", key[name])
    if key["format"] != FILE_FORMAT:
        raise ValueError(
            f"Expected shards of format {FILE_FORMAT}, got {key['format']}, which another version of enfa has written: "
            f"delete them, and compile again"
        )
    expect(key["kind"] in KINDS, f"'key.kind' from {', '.join(KINDS)}", key["kind"])
    expect(key["dtype"] in (None, "float32", "float64"), "'key.dtype' to be float32, float64 or null", key["dtype"])
    program_from(key["program"], found.needs)
    for name in ("columns", "attributes"):
        value = getattr(found, name)
        expect(is_a(value, dict) and all(map(_form, value.values())), f"types and shapes in '{name}'", value)
    expect("x" in found.columns, "'columns' to have x", found.columns)
    expect(found.labels is None or _form(found.labels), "a type and a shape in 'labels', or null", found.labels)
    expect(found.size is None or (whole_numbers([found.size]) and found.size > 0), "a number of graphs in 'size'", found.size)
    files = [shard.file for shard in found.shards]
    expect(len(set(files)) == len(files) and files == sorted(files, key=lambda f: int(f[6:-5])), "shards in their order", files)
