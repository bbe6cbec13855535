"""Your own data: from a list of graphs, or from one ``.npz`` file."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, cast

import numpy as np
import torch
from torch_geometric.data import Data

from enfa.datasets.assemble import assemble
from enfa.datasets.benchmark import Benchmark, Channels, Level, Metric
from enfa.datasets.flat import FlatGraphs
from enfa.datasets.npz.read import Need, check_names, check_needs, flat_graphs, named, read_npz, splits_of, stored

__all__ = ["check_alike", "from_arrays", "from_graphs", "from_npz", "graphs_from_npz", "join", "join_labels", "joined"]


def from_graphs(
    graphs: Sequence[Data],
    *,
    name: str = "graphs",
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    splits: Mapping[str, np.ndarray] | None = None,
    level: Level = "graph",
) -> Benchmark:
    """A benchmark from graphs with ``edge_index`` and ``y``, and maybe ``x`` and ``edge_attr``.

    Integer ``x`` and ``edge_attr`` are categories, float ones are numbers. A graph's ``y`` is an integer (a class), a float (a
    number to predict), or a row, ``[1, T]`` or ``[T]``: yes/no tasks, or numbers where ``metric`` is "mae", "mse" or "r2";
    NaN where not measured. With ``level="node"`` it is ``[n]`` or ``[n, T]``: numbers of nodes. What is not given is read off
    the data; pass ``num_outputs``, ``in_channels`` and ``edge_channels`` where other data may hold more classes or categories
    than these graphs do.

    Classes are numbered from 0 in the order of their values, anew for every list: 1 and 2 become 0 and 1, and so do 2 and 3 in
    another list. ``benchmark.classes`` has the values, as text (None where they were 0, 1, ... already). With ``num_outputs=N``
    they stay as they are, 0 to N - 1, whichever of them a list has.

    The arrays are copied; other attributes of the graphs are left behind, but ``edge_weight`` and ``x_cat``, which models would
    read, are refused.
    """
    graphs = list(graphs)
    if not graphs:
        raise ValueError(f"{name}: expected at least one graph, got none")
    check_alike(name, graphs, y=True)
    flat = joined(name, graphs)
    data = assemble(
        name,
        flat,
        join_labels(name, graphs, level),
        metric=metric,
        num_outputs=num_outputs,
        in_channels=in_channels,
        edge_channels=edge_channels,
        splits=splits,
        level=level,
    )
    return replace(data, directed=flat.share_reversed < 1)


def check_alike(name: str, graphs: Sequence[Data], y: bool) -> None:
    """Refuse graphs of which some have what others lack, or that have inputs of models which would be left behind; with
    ``y``, labels must be there."""
    for key, advice in (("edge_weight", "put it into edge_attr"), ("x_cat", "enfa.compile takes such graphs as they are")):
        place = next((k for k, graph in enumerate(graphs) if graph.get(key) is not None), None)
        if place is not None:
            raise ValueError(
                f"{name}: expected graphs without {key}, which benchmarks have no place for, got graph {place}: {advice}"
            )
    for key, needed in (("edge_index", True), ("y", y), ("x", False), ("edge_attr", False)):
        have = [graph.get(key) is not None for graph in graphs]
        if not all(have) and (needed or any(have)):
            raise ValueError(f"{name}: graph {have.index(False)} has no {key}")


def joined(name: str, graphs: Sequence[Data]) -> FlatGraphs:
    """Graphs laid end to end; without ``x``, all nodes are alike."""
    num_nodes = np.array([graph.num_nodes for graph in graphs])
    return FlatGraphs(
        source=name,
        num_nodes=num_nodes,
        num_edges=np.array([graph.edge_index.size(1) for graph in graphs]),
        edges=join(name, graphs, "edge_index", dim=1).T,
        x=np.zeros(num_nodes.sum(), dtype=np.int64) if graphs[0].x is None else join(name, graphs, "x"),
        edge_attr=None if graphs[0].edge_attr is None else join(name, graphs, "edge_attr"),
    )


def from_npz(
    path: str | Path,
    *,
    name: str | None = None,
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    edges: Literal["auto", "once", "both"] = "auto",
    use_node_attr: bool = False,
) -> Benchmark:
    """A benchmark from one file of arrays, all graphs laid end to end; any integer or float type will do.

    ================== ============= ====================================================================
    ``num_nodes``      ``[G]``       nodes of each graph, adding up to N
    ``num_edges``      ``[G]``       rows of ``edges`` of each graph, adding up to M
    ``edges``          ``[M, 2]``    source and target, counted from 0 in each graph
    ``x``              ``[N, C]``    features: integers are categories, floats are numbers; or instead of it
    ``node_label``     ``[N]``       one categorical column; with neither, all nodes are alike
    ``node_attr``      ``[N, A]``    optional numbers: ``use_node_attr`` puts them before the labels one-hot
    ``edge_attr``      ``[M, D]``    optional, like ``x``
    ``y``              ``[G]``       integers: classes; floats: numbers to predict; or ``[G, T]``: yes/no tasks,
                                     or numbers where ``metric`` is "mae", "mse" or "r2"; NaN: not measured
    ``node_y``         ``[N, T]``    instead of ``y``: numbers to predict for nodes
    ``split_train``    ``[...]``     optional positions of graphs, with ``split_valid`` (or ``split_val``)
                                     and ``split_test``; without them, ten stratified folds
    ``x_categories``   ``[C]``       optional: how many categories each column of ``x`` has, of which these graphs
                                     need not show all; ``edge_categories`` says the same of ``edge_attr``
    ``directions``     text          optional: "both" or "once", for ``edges`` below where that is "auto"
    ``metric``         text          optional; ``targets``, the names of ``y``'s columns; ``classes``, those of the classes
    ================== ============= ====================================================================

    ``edges="both"`` takes the edges as they stand, for files with both directions of every edge (or directed
    graphs); ``"once"`` adds the reverse of each; ``"auto"`` sees which of the two it is. The other options
    are those of ``from_graphs``, as which it numbers classes: an array ``classes``, or ``num_outputs``, keeps 0, 1, ... as they
    are. Nothing in the file is unpickled. ``to_npz`` writes such files.
    """
    path = Path(path)
    return from_arrays(
        path, read_npz(path, ()), name=name, metric=metric, num_outputs=num_outputs, in_channels=in_channels,
        edge_channels=edge_channels, edges=edges, use_node_attr=use_node_attr,
    )  # fmt: skip


def from_arrays(
    path: Path,
    arrays: Mapping[str, np.ndarray],
    *,
    name: str | None = None,
    metric: Metric | None = None,
    num_outputs: int | None = None,
    in_channels: Channels | Sequence[int] | None = None,
    edge_channels: Channels | Sequence[int] | None = None,
    edges: str = "auto",
    use_node_attr: bool = False,
) -> Benchmark:
    """As :func:`from_npz`, of the arrays that the file at ``path`` holds or is to hold."""
    check_names(path, arrays)
    if ("y" in arrays) == ("node_y" in arrays):
        raise ValueError(f"{path}: expected an array 'y', or instead of it 'node_y', got {sorted(arrays)}")
    if metric is None and "metric" in arrays:
        metric = cast(Metric, str(arrays["metric"]))
    flat = flat_graphs(path, arrays, edges, use_node_attr)
    data = assemble(
        name or path.stem,
        flat,
        arrays["y"] if "y" in arrays else arrays["node_y"],
        metric=metric,
        num_outputs=len(arrays["classes"]) if num_outputs is None and "classes" in arrays else num_outputs,
        in_channels=stored(arrays, "x_categories") if in_channels is None else in_channels,
        edge_channels=stored(arrays, "edge_categories") if edge_channels is None else edge_channels,
        splits=splits_of(arrays),
        level="graph" if "y" in arrays else "node",
        targets=named(arrays, "targets"),
    )
    classes = named(arrays, "classes") if "classes" in arrays else data.classes
    return replace(data, classes=classes, directed=flat.share_reversed < 1)


def graphs_from_npz(path: str | Path, *, use_node_attr: bool = False, needs: Sequence[Need] = ()) -> list[Data]:
    """The graphs of a file as ``from_npz`` takes it, for prediction: ``y`` may be missing, and is left behind.

    ``needs``: what the file must say, because a model has learnt from it: "features" of nodes, which are alike without any;
    the edges' "directions", which would be guessed.
    """
    path = Path(path)
    arrays = read_npz(path, ())
    check_names(path, arrays)
    check_needs(path, arrays, needs)
    return flat_graphs(path, arrays, use_node_attr=use_node_attr).graphs()


def join_labels(name: str, graphs: Sequence[Data], level: Level) -> np.ndarray:
    """A row for each graph, also of labels in one dimension, as :func:`enfa.compile` has them; or for each node."""
    if level == "node":
        return join(name, graphs, "y")
    rows = []
    for place, graph in enumerate(graphs):
        try:
            y = torch.as_tensor(graph["y"])
        except (TypeError, ValueError, RuntimeError) as error:  # a text, lists of several lengths
            raise ValueError(f"{name}: expected graph {place} to have a number or numbers as y, got {graph['y']!r}") from error
        rows.append(y[None] if y.ndim == 1 and len(y) != 1 else y)
    return _joined(name, "y", rows)


def join(name: str, graphs: Sequence[Data], key: str, dim: int = 0) -> np.ndarray:
    return _joined(name, key, [graph[key] for graph in graphs], dim)


def _joined(name: str, key: str, values: Sequence[object], dim: int = 0) -> np.ndarray:
    try:
        both = torch.cat([torch.atleast_1d(torch.as_tensor(value)) for value in values], dim=dim).detach().cpu()
    except (RuntimeError, IndexError) as error:
        raise ValueError(f"{name}: the graphs' {key} do not fit together ({error})") from error
    try:
        return (both.float() if both.dtype == torch.bfloat16 else both).numpy()  # NumPy has no bfloat16; float32 holds it
    except TypeError as error:
        got = f"{both.dtype}, {both.layout}"
        raise ValueError(f"{name}: expected the graphs' {key} to be numbers, one by one, got a tensor of {got}") from error
