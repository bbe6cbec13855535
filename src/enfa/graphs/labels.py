"""The labels of many graphs, as one tensor."""

from collections.abc import Sequence

import torch
from torch import Tensor
from torch_geometric.data import Data

from enfa.graphs.tensors import is_kept, of_type, widened
from enfa.graphs.unopened import unopened

__all__ = ["added_labels", "checked_labels", "in_type_of", "labels", "labels_of_graphs", "unknown_labels"]


def labels(graphs: Sequence[Data], first: int = 0, stored: bool = True) -> Tensor | None:
    """``y`` of all graphs, stacked: [G] for single values, [G, T] for rows of T, or [1, T]; what is [1, ...] otherwise becomes
    [G, ...]. None if no graph has any.

    ``first``: the place of graph 0 in its dataset; ``stored``: only of types that files hold.
    """
    if (arrays := unopened(graphs)) is not None:
        return arrays.y.clone()
    ys = [getattr(data, "y", None) for data in graphs]
    lacking = [y is None for y in ys]
    if all(lacking):
        return None
    if any(lacking):
        raise ValueError(
            f"Expected 'y' in all graphs or in none, got it in graph {first + lacking.index(False)} and none in graph "
            f"{first + lacking.index(True)}"
        )
    tensors = [_tensor(y, position, stored) for position, y in enumerate(ys, first)]
    flat = [y.reshape(1, -1) if y.ndim < 2 else y for y in tensors]
    for position, y in enumerate(flat, first):
        if y.shape[0] != 1 or y.shape != flat[0].shape:
            nodes = all(len(y) == graph.num_nodes for graph, y in zip(graphs, tensors) if y.ndim)
            instead = "; labels of nodes are set as node_y of the compiled dataset, of graphs without 'y'" if nodes else ""
            wanted = [1, *flat[0].shape[1:]]
            raise ValueError(f"graph {position}: Expected 'y' of shape {wanted}, got {list(y.shape)}{instead}")
    stacked = torch.cat(flat)
    return stacked[:, 0] if all(y.numel() == 1 and y.ndim < 2 for y in tensors) else stacked


def _tensor(y: object, position: int, stored: bool) -> Tensor:
    try:
        found = torch.as_tensor(y).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:  # a text, a list of lists of several lengths
        raise TypeError(f"graph {position}: Expected 'y' to be a number, a tensor or a list of numbers, got {y!r}") from error
    found = widened(found) if stored else found
    if stored and not is_kept(found):
        raise TypeError(f"graph {position}: Expected 'y' of a type that files hold, got {of_type(found)}")
    return found


def checked_labels(found: Tensor | None, count: int, what: str) -> Tensor | None:
    """Labels that are set for what there is ``count`` of."""
    if found is not None:
        if not isinstance(found, Tensor):
            raise TypeError(f"Expected labels to be a tensor, got {type(found).__name__}")
        if found.ndim == 0 or len(found) != count:
            raise ValueError(f"Expected a label for each of {count} {what}, got a tensor of shape {list(found.shape)}")
    return found


def labels_of_graphs(graphs: Sequence[Data]) -> Tensor | None:
    """The same for one plan, which can do without: None for what is not stacked, such as labels of nodes."""
    if all(getattr(data, "y", None) is not None for data in graphs):
        try:
            return labels(graphs, stored=False)
        except (TypeError, ValueError, RuntimeError):  # of several shapes, or no numbers
            return None
    return labels(graphs)


def added_labels(old: Tensor | None, count: int, graphs: Sequence[Data]) -> Tensor | None:
    """Labels when graphs are added to ``count`` others: NaN (-1 for integers) where one side has none at all."""
    new = labels(graphs)
    if old is None:
        return None if new is None else torch.cat([unknown_labels(new, count), new])
    if new is None:
        new = unknown_labels(old, len(graphs))
    elif new.shape[1:] != old.shape[1:]:
        expected, got = list(old.shape[1:]), list(new.shape[1:])
        raise ValueError(f"Expected 'y' of shape {expected} per graph, as compiled, got {got}")
    elif new.is_floating_point() and not old.is_floating_point() and not torch.equal(new, new.round().nan_to_num()):
        raise ValueError(f"Expected 'y' to hold integers, as compiled, got {new[new != new.round()].tolist()[:3]}")
    return torch.cat([old, in_type_of(old, new, "y")])


def in_type_of(old: Tensor, new: Tensor, name: str) -> Tensor:
    """In the type of what was there before, which for whole numbers must hold every one of them."""
    found, wide = new.to(old.dtype), torch.float64 if new.is_floating_point() else torch.int64
    lost = [] if old.is_floating_point() else new[found.to(wide) != new.to(wide)].tolist()[:3]
    if lost:
        raise ValueError(f"Expected '{name}' that {old.dtype} holds, as compiled, got {lost}: compile all graphs together")
    return found


def unknown_labels(like: Tensor, count: int) -> Tensor:
    if not like.is_floating_point() and not like.dtype.is_signed:
        raise ValueError(
            f"Expected 'y' in all graphs, as labels of {like.dtype} have no number for those that are not known, got graphs "
            "without: make them int64"
        )
    return torch.full((count, *like.shape[1:]), float("nan") if like.is_floating_point() else -1, dtype=like.dtype)
