"""Compiling a dataset shard by shard.

What is done is not done again: a shard whose graphs are those of the manifest, and whose file is what was written, stays. What
belongs to another dataset, policy or model is refused. The bytes of every file depend on the graphs, the policy and the program
alone: not on what compiles them, in which order, or how often that was interrupted.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from enfa.batch.compile import compile_checked, keyed
from enfa.batch.file.storage import file_parts
from enfa.batch.shards.agreed import Agreed
from enfa.batch.shards.engines import engine_of
from enfa.batch.shards.folder import Folder
from enfa.batch.shards.manifest import MANIFEST, UNFINISHED, Manifest, Shard, shard_name
from enfa.batch.shards.stream import SIZE, Block, Deferred, blocks, shard_sizes
from enfa.edits.check import edits_by

__all__ = ["compile_shard", "write_shards"]

Task = tuple[Agreed, Folder, int, Block | Deferred, Shard | None]


def compile_shard(agreed: Agreed, folder: Folder, number: int, given: Block | Deferred, known: Shard | None) -> Shard:
    """Write one shard, unless it is there as ``known`` says; return what it is."""
    policy, program, block = agreed.policy, agreed.program, agreed.checked(given.load())
    try:
        edits = agreed.rooted(edits_by(policy, block.graphs))
    except (ValueError, TypeError) as error:  # which know of this shard's graphs only
        raise type(error)(f"{block.where}, here counted from 0: {error}") from error
    key, graphs, edits, attr = keyed(block.graphs, edits, block.y, block.attr, policy, program, agreed.kind, agreed.dtype)
    name = shard_name(number)
    if known is not None:
        if known.fingerprint != key["fingerprint"]:
            raise ValueError(
                f"{folder.path(name)} holds other graphs, labels or subgraphs than this dataset has there, or has them shared "
                f"out in another way: delete the folder or choose another (for enfa train, compile its config). Graphs are "
                f"added behind a shard that is not full by enfa.ShardedDataset.open(folder, policy=...).extend(graphs)"
            )
        if _is_there(folder, known):
            return known
    compiled = compile_checked(key, graphs, edits, block.y, attr, policy, program, threads=1)
    parts = file_parts(compiled)
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    folder.write(name, parts)
    return Shard(
        name, len(compiled), sum(map(len, parts)), digest.hexdigest(), key["fingerprint"], int(compiled.node_ptr[-1]),
        compiled.num_subgraphs, compiled.num_pairs, [len(rows.keys) for rows in compiled.rows or ()],
    )  # fmt: skip


def _is_there(folder: Folder, known: Shard) -> bool:
    try:
        data = folder.read(known.file)
    except FileNotFoundError:
        return False
    return len(data) == known.bytes and hashlib.sha256(data).hexdigest() == known.sha256


def _known(folder: Folder, wanted: Manifest) -> dict[str, Shard]:
    """The shards that the folder says it has, by name; refused where they are of something else."""
    names = folder.names()
    found = [Manifest.read(folder, name) for name in (MANIFEST, UNFINISHED) if name in names]
    for manifest in found:
        for name in ("key", "needs", "columns", "labels", "attributes", "size"):
            stored, asked = getattr(manifest, name), getattr(wanted, name)
            if name == "key" and stored != asked:
                name = next(part for part in asked if stored[part] != asked[part])
                stored, asked = stored[name], asked[name]
            if stored != asked:
                what = f"{name} {stored!r}, not {asked!r}"
                if name in ("program", "needs"):
                    what = f"another model: {_other(manifest.key['program'], wanted.key['program'])}"
                raise ValueError(f"{folder.url} holds shards of something else: delete the folder or choose another ({what})")
    return {shard.file: shard for manifest in found for shard in manifest.shards}


def _other(stored: dict[str, Any], asked: dict[str, Any]) -> str:
    """What differs between the programs of two models, in a user's words."""
    there, here = ([step for step in program["steps"] if step["op"] == "propagate"] for program in (stored, asked))
    if len(there) != len(here):
        return f"{len(there)} rounds of messages, not {len(here)}"
    if [step["edges"] for step in there] != [step["edges"] for step in here]:
        return "a conv that reads edges, and one that does not"
    for name, what in (("counted", "batch norm"), ("dropout", "dropout")):
        if stored[name] != asked[name]:
            return f"one with {what}, and one without"
    return "conv, readout, bag or jk differ"


def write_shards(
    dataset: Any,
    out: str | Path,
    agree: Callable[[Block], Agreed],
    *,
    shards: int | None = None,
    shard_size: int | None = None,
    engine: Any = None,
    workers: int | None = None,
    progress: bool = True,
) -> Manifest:
    """Compile a stream of graphs into a folder. ``agree`` decides, on the first shard, what holds for all."""
    folder, (sizes, total) = Folder(out), shard_sizes(dataset, shards, shard_size)
    run = engine_of(engine, workers, folder)  # what is wrong with it is said before any work
    stream = blocks(dataset, sizes)
    begun = next(stream, None)
    if begun is None:
        raise ValueError("Expected at least one graph, got none")
    first = begun.load()
    agreed = agree(first)
    size = None if shards is not None else SIZE if shard_size is None else shard_size
    wanted = agreed.manifest(size, [])
    known, done = _known(folder, wanted), {}

    given = len(begun.raw) if isinstance(begun, Deferred) else 0

    def tasks() -> Iterator[Task]:
        nonlocal given
        for number, block in enumerate(chain([first], stream)):
            given += len(block.raw) if isinstance(block, Deferred) else 0
            yield agreed, folder, number, block, known.get(shard_name(number))

    columns = (TextColumn("compiling"), BarColumn(), TextColumn("{task.completed} of {task.fields[of]} graphs"),
               TextColumn("{task.fields[shards]}"), TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    said = Console(stderr=True)
    with Progress(*columns, console=said, disable=not progress) as bar, closing(run(compile_shard, tasks())) as results:
        task = bar.add_task("", total=total, of="?" if total is None else total, shards="")
        for shard in results:
            done[shard.file] = shard
            if shard != known.get(shard.file):
                _in_order(agreed, size, {**known, **done}).write(folder, UNFINISHED)
            bar.update(task, advance=shard.graphs, shards=f"{len(done)} shards")
    if known.keys() - done.keys():
        raise ValueError(
            f"{folder.url} holds {len(known)} shards, but this dataset has only {len(done)}: delete the folder or choose "
            f"another"
        )
    manifest = _in_order(agreed, size, done)
    if given > manifest.graphs:
        warnings.warn(
            f"{given - manifest.graphs:,} of {given:,} lines could not be read and were left out: the attribute 'line' has the "
            f"numbers of the others",
            stacklevel=2,
        )
    manifest.write(folder)
    folder.remove(UNFINISHED)
    return manifest


def _in_order(agreed: Agreed, size: int | None, shards: dict[str, Shard]) -> Manifest:
    return agreed.manifest(size, sorted(shards.values(), key=lambda shard: int(shard.file[6:-5])))
