"""What a model reads of a plan, derived from its arrays once and kept beside them.

Each function looks in the ``cache`` of its argument first. A plan that has been prepared (``enfa.plan.derived.prepare``) has
everything there, and carries it from device to device; one that has not gets it when it is first asked for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.plan.derived._order import add_up, merge_own, split_long
from enfa.plan.derived.order import Lists, SparseMap, by_value, sparse_map
from enfa.plan.links import Links, Sums

__all__ = [
    "FEW_KINDS", "KIND_CHUNK", "edge_index", "incoming_map", "kind_lists", "lowered", "merged_map", "readers",
    "segment_ids", "sorted_ptr", "sums_map", "target_rows",
]  # fmt: skip

FEW_KINDS = 16  # of so few the sums fit into a GPU's registers, and messages need not stand by kind
KIND_CHUNK = 256  # messages of one edge kind that are summed in one piece


def _kept(cache: dict[str, Any], name: str, make: Callable[[], Any]) -> Any:
    if name not in cache:
        with torch.inference_mode(False):  # it may be asked for there first, and then by a pass that records gradients
            cache[name] = make()
    return cache[name]


def segment_ids(ptr: Tensor, total: int) -> Tensor:
    """int64 [total]: the list of each entry; of those behind the end of the last one, in a padded plan, the number of lists."""
    count = torch.cat([ptr.diff(), total - ptr[-1:]])
    return torch.repeat_interleave(torch.arange(len(count), device=ptr.device), count, output_size=total)


def sorted_ptr(ids: Tensor, size: int) -> Tensor:
    """[size+1]: where each number begins among sorted ones."""
    return torch.searchsorted(ids, torch.arange(size + 1, dtype=ids.dtype, device=ids.device))


def readers(index: Tensor, size: int, cache: dict[str, Any], name: str) -> Lists:
    """For each row of a table of ``size`` rows, the places of ``index`` that read it."""

    def make() -> Lists:
        found = by_value(None, index.cpu(), size)
        return found if index.device.type == "cpu" else found.to(index.device)

    return _kept(cache, name, make)


def target_rows(links: Links) -> Tensor:
    """int64 [M]: the row that each message goes to."""
    return _kept(links.cache, "targets", lambda: segment_ids(links.in_ptr, len(links.in_row)))


def edge_index(links: Links) -> Tensor:
    """int64 [2, M], as PyG wants it: rows of the table before, and conv rows."""
    return _kept(links.cache, "edge_index", lambda: torch.stack([links.in_row.long(), target_rows(links)]))


def incoming_map(links: Links, size: int) -> SparseMap:
    """The sum of the incoming rows."""
    return _kept(links.cache, "incoming", lambda: sparse_map(links.in_ptr, links.in_row, size))


def _merged(links: Links, size: int, kinds: bool) -> SparseMap:
    total = links.num_rows + len(links.in_row)
    ptr, index = (torch.empty(length, dtype=torch.int32) for length in (links.num_rows + 1, total))
    kind = torch.empty_like(index) if kinds else None
    raw = (t.cpu().numpy() for t in (links.self_row, links.in_ptr, links.in_row, links.in_edge))
    merge_own(*raw, ptr.numpy(), index.numpy(), None if kind is None else kind.numpy())
    found = sparse_map(ptr, index, size, other=kind)
    return found if links.in_row.device.type == "cpu" else found.to(links.in_row.device)


def merged_map(links: Links, size: int, kinds: bool = False) -> SparseMap:
    """The sum of a row's own row and its incoming rows; the kind of an own row is -1."""
    return _kept(links.cache, "merged kinds" if kinds else "merged", lambda: _merged(links, size, kinds))


def kind_lists(links: Links, kinds: int) -> Lists | None:
    """The messages of each edge kind: target row, and in ``other`` the source row. All of them in pieces. None for few."""
    if kinds <= FEW_KINDS:
        return None

    def make() -> Lists:
        raw = [t.cpu() for t in (links.in_ptr, links.in_edge, links.in_row)]
        found = by_value(raw[0], raw[1], kinds, other=raw[2])
        room = len(raw[1]) // KIND_CHUNK + kinds
        found.extra, found.long = torch.zeros(3, room, dtype=torch.int32), torch.zeros(3, kinds, dtype=torch.int32)
        split_long(found.ptr.numpy(), KIND_CHUNK, 0, found.extra.numpy(), found.long.numpy())
        return found.to(links.in_row.device)

    return _kept(links.cache, "kinds", make)


def sums_map(sums: Sums, size: int) -> SparseMap:
    return _kept(sums.cache, "sum", lambda: sparse_map(sums.ptr, sums.row, size, sums.count))


def lowered(sums: Sums, own: Tensor, rows: int) -> Sums:
    """Over each row's own row instead. Rows that an edit has not reached one layer earlier cancel: the lists get shorter."""
    raw = [t.cpu().numpy() for t in (own, sums.ptr, sums.row, sums.count)]
    place, net = np.full(rows, -1, np.int32), np.empty((2, len(raw[2])), np.int32)
    ptr, new = np.zeros(len(raw[1]), np.int32), np.empty((2, len(raw[2]) + 1), np.int32)
    length = add_up(*raw, place, *net, ptr, *new)
    found = Sums(torch.from_numpy(ptr), *(torch.from_numpy(part[:length]) for part in new))
    return found if own.device.type == "cpu" else found.to(own.device)
