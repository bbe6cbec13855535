"""Graphs as node and edge lists, one record each: lines of JSON, or rows of a Parquet file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets.benchmark import PARTS, Level
from enfa.datasets.own.bad import BadRow, BadRows
from enfa.datasets.own.record_files import record_rows
from enfa.datasets.own.split import part_of

__all__ = ["GraphFile", "read_records"]

FEATURES = ("x", "edge_attr", "node_y")


@dataclass(frozen=True)
class GraphFile:
    """What a file of records holds."""

    graphs: list[Data] = field(repr=False)
    level: Level
    splits: dict[str, np.ndarray] | None
    bad: list[BadRow]


def read_records(path: str | Path, skip_bad: bool = False) -> GraphFile:
    """The graphs of a ``.jsonl`` file (an object on every line) or a ``.parquet`` file (a graph on every row):

    ================== ========================================================================================
    ``edges``          pairs [source, target], counted from 0; or ``edge_index``, [sources, targets], as PyG has it
    ``num_nodes``      not needed where there is ``x``
    ``x``              a number or a list of numbers for each node: whole ones are categories; optional
    ``edge_attr``      the same for each edge; optional
    ``y``              the label: a whole number (a class), a number to predict, or a list of them, null where not
                       measured; optional. Or ``node_y``, a number or a list of them for each node
    ``split``          train, valid or test; optional, but for all or none
    ================== ========================================================================================

    Other names are left behind. All graphs must have the same of these, as wide as the first one's; those that differ and
    those that make no sense are refused, all of them in one :class:`BadRows`, or left out with ``skip_bad``.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"There is no input file {path}")
    graphs, parts, bad = [], [], []
    like: dict[str, str] = {}
    for line, what, record in record_rows(path):
        try:
            graph, part = _graph(record)
            shape = _shape(graph, part)
            for name in shape:
                if shape[name] != like.setdefault(name, shape[name]):
                    raise ValueError(f"Expected {name} with {like[name]}, as before, got {shape[name]}")
        except (ValueError, TypeError) as error:
            bad.append(BadRow(line, what, str(error)))
            continue
        graphs.append(graph)
        parts.append(part)
    if bad and not skip_bad:
        raise BadRows(path, bad, len(bad) + len(graphs))
    if not graphs:
        raise ValueError(f"{path}: Expected at least one graph, got none")
    _fill_empty(graphs)
    of = np.array(parts)
    splits = None if parts[0] is None else {part: np.flatnonzero(of == part) for part in PARTS}
    level: Level = "node" if graphs[0].get("node_y") is not None else "graph"
    for graph in graphs if level == "node" else ():
        graph.y = graph.node_y
        del graph.node_y
    return GraphFile(graphs, level, splits, bad)


def _graph(record: Any) -> tuple[Data, str | None]:
    if isinstance(record, ValueError):
        raise record
    if not isinstance(record, Mapping):
        raise ValueError(f"Expected an object with 'edges', got {type(record).__name__}")
    record = {key: value for key, value in record.items() if value is not None}
    if ("edges" in record) == ("edge_index" in record):
        raise ValueError(f"Expected 'edges', or instead of it 'edge_index', got {', '.join(record) or 'nothing'}")
    edges = _numbers("edges", record["edges"]) if "edges" in record else _numbers("edge_index", record["edge_index"]).T
    edges = edges.reshape(-1, 2) if edges.size == 0 else edges
    if edges.ndim != 2 or edges.shape[1] != 2 or (edges.size and edges.dtype.kind != "i"):
        raise ValueError(f"Expected edges to be pairs of node numbers, got {edges.dtype} of shape {list(edges.shape)}")
    data = Data(edge_index=torch.from_numpy(np.ascontiguousarray(edges.T.astype(np.int64))))
    nodes = record.get("num_nodes")
    for name in FEATURES:
        if name in record:
            values = _numbers(name, record[name])
            if values.ndim not in (1, 2):
                raise ValueError(f"Expected {name} to be a list of numbers or of lists of them, got {list(values.shape)}")
            data[name] = torch.from_numpy(values[:, None] if values.ndim == 1 else values)
    if nodes is None and "x" not in record:
        raise ValueError("Expected 'num_nodes' or 'x', got neither")
    nodes = len(data.x) if nodes is None else nodes
    if not isinstance(nodes, int) or isinstance(nodes, bool) or nodes < 0:
        raise ValueError(f"Expected num_nodes to be a number of nodes, got {nodes!r}")
    for name, count in (("x", nodes), ("node_y", nodes), ("edge_attr", len(edges))):
        if name in record and len(data[name]) != count:
            raise ValueError(f"Expected {name} to have {count} rows, got {len(data[name])}")
    if edges.size and (edges.min() < 0 or edges.max() >= nodes):
        raise ValueError(f"Expected edges between nodes 0 to {nodes - 1}, got {edges.min()} to {edges.max()}")
    data.num_nodes = nodes
    if "y" in record:
        y = _numbers("y", record["y"])
        data.y = torch.from_numpy(y.reshape(1, -1) if y.ndim else y.reshape(1))
    part = record.get("split")
    if part is not None and part_of(str(part)) is None:
        raise ValueError(f"Expected split to be train, valid or test, got {part!r}")
    return data, None if part is None else part_of(str(part))


def _numbers(name: str, values: Any) -> np.ndarray:
    """Whole numbers as int64, others as float64 with NaN for null."""
    try:
        found = np.array(values)
        if found.dtype == object:
            found = np.array(values, dtype=np.float64)  # None becomes NaN
    except (ValueError, TypeError) as error:
        raise ValueError(f"Expected {name} to be numbers, as many in every row, got something else") from error
    if found.dtype.kind not in "iubf":
        raise ValueError(f"Expected {name} to be numbers, got {found.dtype}")
    return found.astype(np.float64 if found.dtype.kind == "f" else np.int64)


def _shape(graph: Data, part: str | None) -> dict[str, str]:
    """What must be alike in all graphs of a file, in words. Features of no nodes or no edges have no known width."""
    found = {"split": "nothing" if part is None else "a part"}
    for name in (*FEATURES, "y"):
        value = graph.get(name)
        if value is None or len(value):
            found[name] = "nothing" if value is None else f"{value.shape[1]} columns" if value.ndim == 2 else "one number"
    return found


def _fill_empty(graphs: Sequence[Data]) -> None:
    """Make features of no nodes or no edges as wide as the others'."""
    for name in FEATURES:
        there = [graph[name] for graph in graphs if graph.get(name) is not None and len(graph[name])]
        for graph in graphs if there else ():
            if not len(graph[name]):
                graph[name] = there[0][:0]
