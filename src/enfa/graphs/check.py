"""Checking what users pass in: one clear sentence that names the graph and the shapes."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data

from enfa.graphs.graphset import GraphSet
from enfa.graphs.layout import laid_out
from enfa.graphs.tensors import in_numpy, of_type
from enfa.graphs.unopened import checked, unopened

__all__ = ["check_graphs", "one_by_one", "read_once"]

_APART = "batch.to_data_list() takes it apart"


def _features(value: object, name: str, count: int, what: str, position: int) -> np.ndarray:
    """One graph's x or edge_attr as a two-dimensional array of float or int64."""
    where = f"graph {position}: Expected '{name}'"
    if not isinstance(value, Tensor):
        raise TypeError(f"{where} to be a tensor, got {type(value).__name__}")
    array = in_numpy(value)
    if array is None:
        raise TypeError(f"{where} to hold floats or integers, one by one, got {of_type(value)}")
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or len(array) != count:
        raise ValueError(f"{where} of shape [{count}, columns] ({count} {what}), got {list(value.shape)}")
    if array.dtype.kind == "f":
        if not np.isfinite(array).all():
            raise ValueError(f"{where} to be finite, got NaN or inf (shape {list(value.shape)})")
        return array + 0.0  # -0.0 and 0.0 are one value
    if array.dtype.kind in "iub":
        if array.size and int(array.min()) < 0:
            raise ValueError(f"{where} categorical values to be >= 0, got {int(array.min())}")
        if array.dtype == np.uint64 and array.size and int(array.max()) >= 2**63:
            raise ValueError(f"{where} categorical values below 2^63, got {int(array.max())}")
        return array.astype(np.int64, copy=False)
    raise TypeError(f"{where} to hold floats or integers, got {value.dtype}")


def _beside(x: np.ndarray, cat: np.ndarray, position: int) -> tuple[np.ndarray, np.ndarray]:
    """Categorical columns after float ones, as floats that hold them exactly; and their largest values."""
    if x.dtype.kind != "f" or cat.dtype.kind != "i":
        raise ValueError(
            f"graph {position}: Expected floats in 'x' and integers in 'x_cat' beside it, got {x.dtype} and {cat.dtype}"
        )
    if cat.size and int(cat.max()) >= 2**24:
        raise ValueError(f"graph {position}: Expected 'x_cat' below 2^24, got {int(cat.max())}")
    x = x.astype(np.float32) if x.dtype == np.float16 else x
    return np.concatenate([x, cat.astype(x.dtype)], axis=1), cat.max(axis=0, initial=0)


def _larger(one: np.ndarray, other: np.ndarray, position: int) -> np.ndarray:
    if len(one) != len(other):
        raise ValueError(f"graph {position}: Expected 'x_cat' with {len(one)} columns, as in graph 0, got {len(other)}")
    return np.maximum(one, other)


def _said(value: object) -> str:
    return f"one of shape {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _says(said: Any, count: int) -> bool:
    try:
        return float(said) == count  # a tensor of one number, too
    except (TypeError, ValueError, RuntimeError):
        return False


def _edges(data: Data, nodes: int, position: int) -> np.ndarray:
    edges = data.edge_index
    where = f"graph {position}: Expected 'edge_index'"
    if not isinstance(edges, Tensor):
        got = type(edges).__name__
        if edges is None and "adj_t" in data:
            got = "'adj_t' in its place: leave ToSparseTensor away, or give it remove_edge_index=False"
        raise TypeError(f"{where} to be a tensor, got {got}")
    if edges.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{where} to hold integer node numbers, got {edges.dtype} (shape {list(edges.shape)})")
    if edges.ndim != 2 or edges.shape[0] != 2:
        raise ValueError(f"{where} of shape [2, edges], got {list(edges.shape)}")
    array = in_numpy(edges)
    if array is None:
        raise TypeError(f"{where} to hold node numbers, one by one, got {of_type(edges)}")
    if array.size and (int(array.min()) < 0 or int(array.max()) >= nodes):
        raise ValueError(
            f"{where} to name nodes 0 to {nodes - 1}, got {int(array.min())} to {int(array.max())} "
            f"(x has {nodes} rows, edge_index shape {list(edges.shape)})"
        )
    return array


def _stack(parts: list[np.ndarray], name: str, first: int) -> np.ndarray:
    """Join the graphs' features; all must have one width and one dtype."""
    for position, part in enumerate(parts, first):
        if part.shape[1] != parts[0].shape[1] or part.dtype != parts[0].dtype:
            raise ValueError(
                f"graph {position}: Expected '{name}' with {parts[0].shape[1]} columns of {parts[0].dtype}, "
                f"as in graph {first}, got {part.shape[1]} columns of {part.dtype}"
            )
    return np.concatenate(parts)


def check_sequence(graphs: object) -> None:
    """Refuse what is no list of graphs, and say how it becomes one."""
    if isinstance(graphs, Batch):
        raise TypeError(f"Expected a list of graphs, got a Batch of {graphs.num_graphs}: {_APART}")
    if isinstance(graphs, Data):
        raise TypeError("Expected a list of graphs, got a single Data object: wrap it as [graph]")
    name = type(graphs).__name__
    if isinstance(graphs, Iterator):  # it could be read only once
        raise TypeError(f"Expected a list of graphs, got {name}: pass list(...) of it")
    if not hasattr(graphs, "__len__") or not hasattr(graphs, "__getitem__"):
        hint = ": pass list(...) of it" if isinstance(graphs, Iterable) else ""
        raise TypeError(f"Expected a list of graphs, got {name}{hint}")


def one_by_one(graphs: Any) -> Iterator[Data]:
    """The graphs of a list or a dataset: up to its length, behind which a map-style dataset need not raise an IndexError."""
    return iter(graphs) if isinstance(graphs, Iterable) or not hasattr(graphs, "__len__") else _by_number(graphs)


def _by_number(graphs: Any) -> Iterator[Data]:
    for number in range(len(graphs)):
        try:
            graph = graphs[number]
        except IndexError as error:
            raise ValueError(f"Expected {len(graphs)} graphs, as their length says, got no graph {number} ({error})") from error
        yield graph


def read_once(graphs: Sequence[Data]) -> Sequence[Data]:
    """The same list; of a dataset one, because its transform may draw, and so make other graphs each time it is read."""
    check_sequence(graphs)
    return graphs if type(graphs) in (list, tuple) or unopened(graphs) is not None else list(one_by_one(graphs))


def check_graphs(graphs: Sequence[Data], first: int = 0) -> GraphSet:
    """Check PyG graphs and join them into a :class:`GraphSet`. Cost: one pass over the data.

    ``first``: the place of graph 0 in its dataset, where these are a part of one.

    Attributes of the graphs that no model here takes are left alone, as PyG does, and so is ``edge_attr`` where the
    model reads none; but ``edge_weight``, which PyG's convs would use, is refused.

    Raises a ``TypeError`` or ``ValueError`` that names the first offending graph by position.
    """
    check_sequence(graphs)
    if len(graphs) == 0:
        raise ValueError("Expected at least one graph, got an empty list")
    if (arrays := unopened(graphs)) is not None:
        return checked(arrays.flat, first)
    xs, attrs, edges, categories, first_cat = [], [], [], None, None
    for position, data in enumerate(one_by_one(graphs), first):
        if not isinstance(data, Data):
            raise TypeError(f"graph {position}: Expected torch_geometric Data, got {type(data).__name__}")
        if isinstance(data, Batch):
            raise TypeError(f"graph {position}: Expected a single graph, got a Batch of {data.num_graphs}: {_APART}")
        if data.x is None:
            raise ValueError(
                f"graph {position}: Expected node features 'x', got none "
                f"(for featureless graphs use x = torch.zeros(num_nodes, 1, dtype=torch.long))"
            )
        x = _features(data.x, "x", len(data.x) if isinstance(data.x, Tensor) and data.x.ndim else 0, "nodes", position)
        said = data._store.get("num_nodes")
        if said is not None and not _says(said, len(x)):
            raise ValueError(f"graph {position}: Expected 'x' with a row for each of num_nodes={said!r} nodes, got {len(x)}")
        cat = getattr(data, "x_cat", None)  # once: PyG takes long to say that there is none
        first_cat = cat if position == first else first_cat
        if (cat is None) != (first_cat is None):
            raise ValueError(
                f"graph {position}: Expected 'x_cat' in all graphs or in none, but graph {first} "
                f"{'has none' if first_cat is None else 'has it'}"
            )
        if cat is not None:
            x, largest = _beside(x, _features(cat, "x_cat", len(x), "nodes", position), position)
            categories = largest if categories is None else _larger(categories, largest, position)
        edge = _edges(data, len(x), position)
        xs.append(x)
        edges.append(edge)
        if (data.edge_attr is None) != (graphs[0].edge_attr is None):
            raise ValueError(
                f"graph {position}: Expected 'edge_attr' in all graphs or in none, but graph {first} "
                f"{'has none' if graphs[0].edge_attr is None else 'has it'}"
            )
        if data.edge_weight is not None:  # unlike other attributes: PyG's convs would use it
            raise ValueError(
                f"graph {position}: Expected no 'edge_weight', which nothing here reads, got {_said(data.edge_weight)}: "
                f"put weights into 'edge_attr', for a conv that reads them (conv='gine', edge_channels=1; "
                f"enfa.lift(model, edges='edge_weight') hands them over as weights)"
            )
        if data.edge_attr is not None:
            attrs.append(_features(data.edge_attr, "edge_attr", edge.shape[1], "edges", position))

    sizes, counts = np.array([len(x) for x in xs]), np.array([edge.shape[1] for edge in edges])
    attr = _stack(attrs, "edge_attr", first) if attrs else None
    return laid_out(sizes, counts, np.concatenate(edges, axis=1), _stack(xs, "x", first), attr, categories, first)
