"""PyG's convs on Rows.

A conv is called with Rows and with a stand-in for the edge list, of which it can do nothing but pass messages, count them and
add self-loops. So everything outside of messages acts on Rows, and is exact or refused; in the messages, of which each belongs
to one row, the conv's own code runs on plain tensors.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import GATConv, GATv2Conv, MessagePassing, RGCNConv, SimpleConv

from enfa.nn.bag.edges import EdgeList
from enfa.nn.convs.exact import check_exact
from enfa.nn.rowwise.rows import EDGES, Rows

__all__ = ["convolve", "prepared", "with_pairs"]


def convolve(conv: nn.Module, h: Rows, edges: EdgeList, more: dict[str, Any]) -> Rows:
    """conv(h) along some edges."""
    from enfa.nn.bag.views import run_view

    if not isinstance(conv, nn.Module) or not any(isinstance(part, MessagePassing) for part in conv.modules()):
        raise TypeError(f"Expected a PyG conv (torch_geometric.nn.MessagePassing), or a module that has some, got {conv!r}")
    parameters = inspect.signature(conv.forward).parameters
    name, names = type(conv).__name__, list(parameters)
    if "edge_index" not in names or names[0] == "edge_index":
        raise TypeError(f"Expected a conv that takes features and an edge_index, got {name}, which takes {', '.join(names)}")
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        missing = [key for key in more if key not in names]
        if missing:
            raise TypeError(f"{name} takes no {missing[0]!r}: its forward takes {', '.join(names)}")
    lacking = [
        p.name
        for p in list(parameters.values())[1:]
        if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in ("edge_index", *more)
    ]
    if lacking:
        raise TypeError(f"{name} needs {lacking[0]!r}: bag.propagate(conv, h, {lacking[0]}=...)")
    try:
        out = run_view(conv, h, edge_index=edges, **more)
    except AttributeError as error:
        if "edge_attr" not in names or more.get("edge_attr") is not None or "'NoneType'" not in str(error):
            raise
        raise TypeError(
            f"{name} reads 'edge_attr', and got none: bag.propagate(conv, h, edge_attr=...), made from bag.edge_attr"
        ) from error
    if not isinstance(out, Rows) or out.kind != h.kind:
        got = out if isinstance(out, Rows) else type(out).__name__
        raise TypeError(f"Expected {name} to return Rows of {h.kind}, got {got}")
    return out


def prepared(conv: MessagePassing, forward: Callable) -> Callable:
    """The forward of a conv's view: Rows become (sources, targets) where the signature allows for two tensors.

    Such convs make a pair of a Tensor by themselves, and Rows are none.
    """
    check_exact(conv)
    if getattr(conv, "cached", False):
        raise ValueError(f"Expected {type(conv).__name__} with cached=False, because batches differ in their edges, got True")
    # of a pair GATConv computes one linear twice, and SimpleConv refuses it; a function around PyG's own asks nothing itself
    asks = type(conv) in (GATConv, GATv2Conv) or (type(conv) is SimpleConv and conv.combine_root == "self_loop")
    if asks and isinstance(forward, MethodType) and forward.__func__.__globals__["__name__"] == type(conv).__module__:
        return _of_tensors(forward)
    if type(conv) is RGCNConv:
        forward = functools.partial(_by_relation, conv, forward.__self__)  # type: ignore[attr-defined]
    return with_pairs(forward, inspect.signature(conv.forward))


class _Told(type):
    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (Tensor, Rows))


class _TensorOrRows(metaclass=_Told):
    """What ``Tensor`` is to a conv that asks whether it is given one."""


def _of_tensors(forward: MethodType) -> Callable:
    """A method that takes Rows for tensors where it asks."""
    function: Any = forward.__func__
    space = {**function.__globals__, "Tensor": _TensorOrRows}
    new = FunctionType(function.__code__, space, function.__name__, function.__defaults__, function.__closure__)
    return MethodType(new, forward.__self__)


def with_pairs(forward: Callable, signature: inspect.Signature | None = None) -> Callable:
    """``forward``, for which Rows become (sources, targets) where its signature allows for two tensors."""
    signature = inspect.signature(forward) if signature is None else signature
    pairs = {p.name for p in signature.parameters.values() if _takes_pairs(p)}

    def called(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, value in bound.arguments.items():
            if isinstance(value, Rows) and value.number != EDGES and name in pairs:
                bound.arguments[name] = (value, value)
        return forward(*bound.args, **bound.kwargs)

    return called


def _takes_pairs(parameter: inspect.Parameter) -> bool:
    return any(word in str(parameter.annotation) for word in ("Tuple", "tuple", "Pair"))


def _by_relation(conv: Any, new: Any, x: Any, edge_index: EdgeList, edge_type: Rows | None = None) -> Rows:
    """RGCNConv.forward, which adds the relations up into a tensor of zeros, of no table's rows."""
    x = x[0] if isinstance(x, tuple) else x
    name = type(conv).__name__
    if edge_type is None:
        raise TypeError(f"{name} needs 'edge_type': bag.propagate(conv, h, edge_type=...), made from bag.edge_attr")
    if conv.num_blocks is not None:
        raise TypeError(f"Expected {name} without blocks, got num_blocks={conv.num_blocks}: use FastRGCNConv")
    if not isinstance(x, Rows) or not x.is_floating_point():
        got = f"Rows of {x.dtype}" if isinstance(x, Rows) else type(x).__name__
        raise TypeError(f"Expected floating-point Rows for {name}, got {got}: embed them first")
    weight: Tensor = conv.weight
    if conv.num_bases is not None:
        weight = (conv.comp @ weight.view(conv.num_bases, -1)).view(conv.num_relations, conv.in_channels_l, conv.out_channels)
    parts = [
        new.propagate(edge_index.masked(edge_type == i), x=x, edge_type_ptr=None) @ weight[i] for i in range(conv.num_relations)
    ]
    if conv.root is not None:
        parts.append(x @ conv.root)
    out = sum(parts[1:], parts[0])
    return out if conv.bias is None else out + conv.bias
