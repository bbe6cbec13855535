"""GINE: Hu et al., "Strategies for Pre-training Graph Neural Networks", ICLR 2020, as OGB uses it."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from enfa.nn.convs import _gine
from enfa.nn.convs.base import Conv, Degrees, mlp
from enfa.nn.ops.function import applied, backward_once
from enfa.nn.ops.linear import called
from enfa.nn.ops.segment import entry_sums, gather
from enfa.nn.ops.threads import array, by_numba, in_threads
from enfa.nn.triton import accelerated
from enfa.plan.derived.maps import kind_lists, merged_map, segment_ids
from enfa.plan.derived.order import Lists, SparseMap
from enfa.plan.links import Links

__all__ = ["GINE"]


@cache
def _kernel() -> Callable[..., Tensor]:
    from enfa.nn.triton.gine import gine_sum

    return gine_sum


class _Listed(torch.autograd.Function):
    """What ``enfa.nn.triton.gine`` computes, from the same lists: by numba's kernels on the CPU, else by plain operators."""

    @staticmethod
    def forward(ctx: Any, table: Tensor, edge: Tensor, merged: SparseMap, kinds: Lists | None) -> Tensor:
        ctx.save_for_backward(table, edge)
        ctx.lists = merged.backward, kinds
        lists = merged.forward
        assert lists.other is not None
        if by_numba(table, edge):
            out = table.new_zeros(len(lists), table.shape[1])
            arrays = [array(t) for t in (table, edge, lists.ptr, lists.index, lists.other)]
            in_threads(-(-len(lists) // _gine.RUN), out.numel(), lambda a, b: _gine.sums(*arrays, a, b, array(out)))
            return out
        value, sent = _messages(table, edge, lists.index, lists.other)
        return entry_sums(torch.where(sent, value.relu(), value), lists.ptr)

    @staticmethod
    @backward_once
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        table, edge = ctx.saved_tensors
        found = _by_kernels if by_numba(grad, table, edge) else _by_operators
        return *found(grad, table, edge, *ctx.lists), None, None


def _by_kernels(grad: Tensor, table: Tensor, edge: Tensor, back: Lists, kinds: Lists | None) -> tuple[Tensor, Tensor]:
    runs, channels = -(-len(back) // _gine.RUN), table.shape[1]
    arrays = [array(t) for t in (grad, table, edge)]
    lists = [array(t) for t in (back.ptr, back.index, back.other)]  # type: ignore[arg-type]
    out, by_run = table.new_zeros(table.shape), np.zeros((runs, len(edge) if kinds is None else 0, channels))
    in_threads(runs, 2 * out.numel(), lambda a, b: _gine.gradient(*arrays, *lists, a, b, array(out), by_run))
    if kinds is None:
        return out, torch.from_numpy(by_run.sum(0)).to(edge.dtype)
    lists = [array(t) for t in (kinds.ptr, kinds.index, kinds.other)]  # type: ignore[arg-type]
    of_edge, messages = edge.new_zeros(edge.shape), len(kinds.index)
    in_threads(len(edge), messages * channels, lambda a, b: _gine.kind_gradient(*arrays, *lists, a, b, array(of_edge)))
    return out, of_edge


def _messages(table: Tensor, edge: Tensor, row: Tensor, kind: Tensor) -> tuple[Tensor, Tensor]:
    """The arguments of ReLU of some messages, and which are messages: an own row has kind -1."""
    own = table.new_zeros(1, table.shape[1])
    return table.index_select(0, row) + torch.cat([own, edge]).index_select(0, kind + 1), (kind >= 0)[:, None]


def _by_operators(grad: Tensor, table: Tensor, edge: Tensor, back: Lists, kinds: Lists | None) -> tuple[Tensor, Tensor]:
    end = int(back.ptr[-1])
    kind = back.other[:end]  # type: ignore[index]
    value, sent = _messages(table, edge, segment_ids(back.ptr, end), kind)
    passed = torch.where(sent & (value <= 0), 0, grad.index_select(0, back.index[:end]))
    of_table = entry_sums(passed, back.ptr)
    if kinds is None:
        own = passed.new_zeros(len(edge) + 1, passed.shape[1])
        return of_table, own.index_add_(0, kind + 1, passed)[1:]
    end = int(kinds.ptr[-1])
    value, _ = _messages(table, edge, kinds.other[:end], segment_ids(kinds.ptr, end))  # type: ignore[index]
    above = grad.index_select(0, kinds.index[:end])
    return of_table, entry_sums(torch.where(value > 0, above, 0), kinds.ptr)


class GINE(Conv):
    """MLP((1 + eps) x_v + sum of relu(x_u + W e_uv + b) over edges u -> v), with eps = 0, or learnt where ``train_eps``.

    ``edge_bias=False`` leaves out b: W is an embedding then, of edges that are one-hot.
    """

    reads_edges = True
    links: tuple[str, ...] = ("merged kinds", "kinds")

    def __init__(
        self, in_channels: int, out_channels: int, edge_dim: int, norm: str | None, train_eps: bool = False,
        edge_bias: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()
        self.edge = nn.Linear(edge_dim, in_channels, bias=edge_bias)
        self.eps = nn.Parameter(torch.zeros(1)) if train_eps else None
        if train_eps:
            self.links = (*self.links, "self_row", "self")
        self.update = mlp(in_channels, out_channels, norm)

    def messages(self, rows: Tensor, links: Links, edge: Tensor | None, degree: Degrees) -> Tensor:
        if edge is None:
            raise ValueError("Expected edge attributes for conv='gine', which reads them: bag.propagate(conv, h, edge_attr)")
        features = called(self.edge, edge)
        kinds = features.shape[0]
        if self.eps is not None and kinds and accelerated(rows) and kind_lists(links, kinds) is None:
            return _kernel()(rows, features, merged_map(links, rows.shape[0], kinds=True), None, self.eps)
        found = self._summed(rows, links, features)
        return found if self.eps is None else found + self.eps * gather(rows, links.self_row, links.cache, "self")

    @staticmethod
    def _summed(rows: Tensor, links: Links, features: Tensor) -> Tensor:
        """[R, in]: each row and its messages. ``features`` [edge kinds, in]."""
        both = merged_map(links, rows.shape[0], kinds=True), kind_lists(links, features.shape[0])
        return _kernel()(rows, features, *both) if accelerated(rows) else applied(_Listed, rows, features, *both)
