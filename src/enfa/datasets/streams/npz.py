"""An ``.npz`` file of any size, read block by block."""

from __future__ import annotations

import math
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np

from enfa.datasets.assemble import labels_from
from enfa.datasets.benchmark import REGRESSION, Metric
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.npz.read import EITHER, flat_graphs, seen
from enfa.datasets.streams.flat import FlatStream

__all__ = ["NpzStream"]

_OF_NODES, _OF_EDGES = ("x", "node_label"), ("edges", "edge_attr")


class NpzStream(FlatStream):
    """The graphs of a file as :func:`enfa.datasets.from_npz` describes it, in its order, a block at a time.

    In memory are the numbers of nodes and edges, the labels, and one block. ``y`` may be missing; ``metric`` and ``edges`` are
    those of ``from_npz``, but where ``edges`` is "auto", the first edges tell whether all stand in both directions or none.
    """

    def __init__(
        self, path: str | Path, *, metric: Metric | None = None, edges: Literal["auto", "once", "both"] = "auto"
    ) -> None:
        self.path, self.edges = Path(path), edges
        if edges not in ("auto", "once", "both"):
            raise ValueError(f"Expected edges to be 'auto', 'once' or 'both', got {edges!r}")
        with self._open() as file:
            names = {name.removesuffix(".npy") for name in file.namelist()}
            for key in ("num_nodes", "num_edges", "edges"):
                if key not in names:
                    raise ValueError(f"{path}: expected an array {key!r}, got only {sorted(names)}")
            if "y" not in names and "node_y" in names:
                raise ValueError(f"{path}: expected labels of graphs, 'y', got labels of nodes, which shards do not hold")
            self.num_nodes, self.num_edges = (self._whole(file, name) for name in ("num_nodes", "num_edges"))
            y = self._whole(file, "y") if "y" in names else None
            if metric is None and "metric" in names:
                metric = cast(Metric, str(self._whole(file, "metric")))
            if edges == "auto" and "directions" in names:
                self.edges = cast(Any, str(self._whole(file, "directions")))
                if self.edges not in ("once", "both"):
                    raise ValueError(f"{path}: expected directions to be 'once' or 'both', got {self.edges!r}")
        for name, count in (("num_edges", self.num_edges), ("y", y)):
            if count is not None and len(count) != len(self.num_nodes):
                raise ValueError(
                    f"{path}: num_nodes counts {len(self.num_nodes)} graphs, {name} {len(count)}; is it cut short?"
                )
        self.y = None if y is None else labels_from(str(path), y, None, metric in REGRESSION)[1]
        self._names = [
            name for name in (*_OF_NODES, *_OF_EDGES) if name in names and (name != "node_label" or "x" not in names)
        ]

    def __len__(self) -> int:
        return len(self.num_nodes)

    @contextmanager
    def _open(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as file:
                yield file
        except (zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ValueError(f"{self.path} is cut short, or is no .npz file of plain arrays ({error})") from error

    def _whole(self, file: zipfile.ZipFile, name: str) -> np.ndarray:
        try:
            with file.open(f"{name}.npy") as member:
                return np.lib.format.read_array(member, allow_pickle=False)
        except ValueError as error:
            raise ValueError(f"{self.path}: expected a plain array {name!r} ({error})") from error

    def flat_blocks(self, sizes: Iterable[int]) -> Iterator[tuple[FlatGraphs, np.ndarray | None]]:
        first, edges = 0, self.edges
        with self._open() as file, ExitStack() as stack:
            columns = {
                name: _Rows(stack.enter_context(file.open(f"{name}.npy")), f"{self.path}: '{name}'") for name in self._names
            }
            for size in sizes:
                if first >= len(self):
                    return
                some = slice(first, min(first + size, len(self)))
                counts = {"num_nodes": self.num_nodes[some], "num_edges": self.num_edges[some]}
                arrays = dict(counts)
                for name, column in columns.items():
                    arrays[name] = column.read(int(counts["num_nodes" if name in _OF_NODES else "num_edges"].sum()))
                where = f"{self.path}, graphs {some.start} to {some.stop - 1}"
                flat = flat_graphs(Path(where), arrays, "both")
                found = _directions(flat) if self.edges == "auto" else None
                if found is not None and edges != found:
                    if edges != "auto":
                        raise ValueError(
                            f"{where}: edges stand {'in both directions' if found == 'both' else 'once'}, those before do "
                            f"not; {EITHER}"
                        )
                    edges = found
                yield flat.with_reversed() if edges == "once" else flat, None if self.y is None else self.y[some]
                first = some.stop


class _Rows:
    """The rows of an array of the file, read one behind the other; column by column, as a few are stored, only all at once."""

    def __init__(self, member: IO[bytes], name: str) -> None:
        self.member, self.name, self.held = member, name, None
        try:
            version = np.lib.format.read_magic(member)
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            shape, fortran, self.dtype = read(member)
            if self.dtype.hasobject or not shape:
                raise ValueError(f"{self.dtype} of shape {shape}")
        except ValueError as error:
            raise ValueError(f"{name}: expected a plain array ({error})") from error
        self.shape = shape[1:]
        if fortran and self.shape:
            self.held = self._bytes(shape[0]).reshape(*self.shape, shape[0]).T

    def _bytes(self, rows: int) -> np.ndarray:
        size = rows * math.prod(self.shape) * self.dtype.itemsize
        data = self.member.read(size)
        if len(data) != size:
            raise ValueError(f"{self.name}: the graphs have more rows; is the file cut short?")
        return np.frombuffer(bytearray(data), self.dtype)  # which may be written to

    def read(self, rows: int) -> np.ndarray:
        if self.held is None:
            return self._bytes(rows).reshape(rows, *self.shape)
        some, self.held = self.held[:rows], self.held[rows:]
        return some


def _directions(flat: FlatGraphs) -> Literal["once", "both"] | None:
    """Whether edges stand in both directions; None where there are none but loops. Some of both is refused."""
    return seen(flat) if (flat.edges[:, 0] != flat.edges[:, 1]).any() else None
