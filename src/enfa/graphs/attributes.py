"""What graphs have as a whole, such as a temperature or a fingerprint of a molecule: it rides along to the models."""

from collections.abc import Collection, Sequence
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.graphs.labels import in_type_of
from enfa.graphs.tensors import is_kept, widened
from enfa.graphs.unopened import unopened

__all__ = ["GraphAttributes", "added_attributes", "graph_attributes"]

_OTHERS = {"x", "x_cat", "edge_index", "edge_attr", "edge_weight", "y", "num_nodes", "batch", "ptr"}


class _NoAttribute(KeyError):
    __str__ = Exception.__str__  # a sentence, not a key in quotes


class GraphAttributes(dict[str, Tensor]):
    """By name, [graphs, ...]."""

    def __missing__(self, name: str) -> Tensor:
        raise _NoAttribute(
            f"Expected an attribute of whole graphs, got {name!r}; there are {', '.join(self) or 'none'}: it is a number, or a "
            f"tensor of one shape, in every graph, and [1, ...] where it could be one for each node or edge"
        )


def _value(data: Data, name: str) -> Tensor | None:
    """One row of the attribute; None where it is no number and no tensor of numbers."""
    value: Any = getattr(data, name, None)
    if isinstance(value, Real):
        try:
            value = torch.as_tensor(value)
        except (ValueError, RuntimeError, OverflowError, TypeError):  # more than 64 bits
            return None
    value = widened(value) if isinstance(value, Tensor) else None
    if value is None or not is_kept(value):
        return None
    return value.cpu().reshape(value.shape[1:] if value.shape[:1] == (1,) else value.shape)


def _of_parts(data: Data, name: str) -> tuple[bool, bool]:
    """Whether there is a number for each node, and for each edge."""
    value: Any = getattr(data, name)
    length = len(value) if isinstance(value, Tensor) and value.ndim else 1
    return length != 1 and length == data.x.shape[0], length != 1 and length == data.edge_index.shape[1]


def graph_attributes(graphs: Sequence[Data], names: Collection[str] | None = None) -> dict[str, Tensor]:
    """By name, [graphs, ...]: what all graphs have beside features, edges and labels, a number or a tensor of one shape.

    A leading axis of one is that of the graphs, as in PyG: [1, 3] becomes [graphs, 3], as [3] does, and a number [graphs]. What
    has a number for each node, or for each edge, of all graphs is left alone, and so is what some graphs lack or have in
    another shape. ``names``: these and no others, whatever their lengths.
    """
    if names is None and unopened(graphs) is not None:  # they have none
        return {}
    given: Any = graphs[0]
    chosen = [name for name in given.to_dict() if name not in _OTHERS] if names is None else list(names)
    found: dict[str, list[Tensor]] = {name: [] for name in chosen}
    parts = dict.fromkeys(chosen, (names is None, names is None))
    for data in graphs if found else ():
        for name, values in list(found.items()):
            value = _value(data, name)
            if value is None or (values and value.shape != values[0].shape):
                del found[name]
                continue
            values.append(value)
            if any(parts[name]):
                nodes, edges = _of_parts(data, name)
                parts[name] = parts[name][0] and nodes, parts[name][1] and edges
    return {name: torch.stack(values) for name, values in sorted(found.items()) if not any(parts[name])}


def added_attributes(old: dict[str, Tensor], graphs: Sequence[Data]) -> dict[str, Tensor]:
    """The same when graphs are added to others: those that the others have, no more and no fewer."""
    new = graph_attributes(graphs, old.keys())
    for name, value in old.items():
        shape = list(value.shape[1:])
        if name not in new or new[name].shape[1:] != value.shape[1:]:
            got = list(new[name].shape[1:]) if name in new else "none, or several shapes"
            raise ValueError(f"Expected '{name}' of shape {shape} for every graph, as compiled, got {got}")
        if new[name].is_floating_point() and not value.is_floating_point():
            raise ValueError(f"Expected '{name}' to hold {value.dtype}, as compiled, got {new[name].dtype}")
    return {name: torch.cat([value, in_type_of(value, new[name], name)]) for name, value in old.items()}
