"""What is said where Rows cannot be computed with exactly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = ["check_devices", "check_gradients", "check_precision", "in_words_of_pyg", "name_of", "refuse"]

_POOL = "use bag.pool(h, {!r}) over nodes or subgraphs, or dim=-1 over channels"
_OUT = "bag.pool and bag.each give ordinary tensors"
_TABLE = "join columns with dim=1; bag.spread brings other rows to this table"
_COLUMNS = "take columns as h[:, a:b]; bag.root and bag.diagonal pick rows, torch.where(mask, a, b) chooses in each row"
_WRITE = "torch.cat([h[:, :a], new], 1) writes columns, torch.where(mask, a, b) chooses in each row"
_DROP = "use torch.nn.Dropout, whose masks are the same in every plan"
_MATRIX = "multiply by a matrix from the right (h @ weight), and pass messages (bag.propagate) from row to row"
_LOOK = "use bag.pool(h, 'softmax', score=...) for attention over rows"
_ALONE = "pool first (bag.pool), pass messages (bag.propagate), or write h.of(f(h.value)) if it does act on each row by itself"
_INSTEAD = {
    **{name: _POOL.format(name) for name in ("mean", "sum", "max")}, "amax": _POOL.format("max"),
    "softmax": f"{_LOOK}, or dim=-1 for a softmax over channels",
    **dict.fromkeys(["multi_head_attention_forward", "scaled_dot_product_attention"], _LOOK),
    **dict.fromkeys(["cat", "concat", "concatenate", "stack", "hstack", "vstack"], _TABLE),
    **dict.fromkeys(["getitem", "masked_select", "nonzero", "index_select", "where"], _COLUMNS), "setitem": _WRITE,
    **dict.fromkeys(["item", "tolist", "numpy", "array", "float", "int", "bool", "iteration", "len", "copy", "dlpack"], _OUT),
    **dict.fromkeys(["alpha_dropout", "feature_dropout", "dropout_", "dropout1d", "rrelu", "bernoulli", "rand_like"], _DROP),
    **dict.fromkeys(["matmul", "mm", "rmatmul", "linear"], _MATRIX),
    "squeeze": "name the axis, as x.squeeze(-1) does",
    "instance_norm": "use torch.nn.LayerNorm, or torch.nn.BatchNorm1d, which is counted",
    "forward": "take a module as it is, not scripted or traced",
}  # fmt: skip
# Lifted models have no bag: what its verbs are for them.
_OF_PYG = {
    **{f"bag.pool(h, {how!r}) over nodes or subgraphs": f"global_{name}_pool(x, batch)"
       for how, name in (("sum", "add"), ("mean", "mean"), ("max", "max"))},
    _LOOK: "weigh rows in the pool (torch_geometric.nn.aggr.AttentionalAggregation)",
    _OUT: "lifted with head='graph' it has ordinary tensors behind its pool",
    "bag.spread brings other rows to this table": "pooled[batch] brings what was pooled to its nodes",
    "(bag.spread brings nodes and subgraphs to pairs)": "(pooled[batch] brings what was pooled to its nodes)",
    "; bag.spread brings [graphs, channels] to pairs": "", " bag.root and bag.diagonal pick rows,": "",
    "(bag.pool)": "(global_add_pool(x, batch))", "bag.pool(h, 'mean') for a mean": "global_mean_pool(x, batch) for a mean",
    "(bag.propagate)": "(by a conv)", "bag.x, bag.mark": "x, edge_attr",
    "; bag.pool(h, 'softmax', score=...)": "", "before or after bag.propagate": "before or after the conv",
}  # fmt: skip


def in_words_of_pyg(error: TypeError) -> None:
    """What was advised to a model on a bag, as a lifted model has it."""
    for words, others in _OF_PYG.items():
        error.args = tuple(arg.replace(words, others) if isinstance(arg, str) else arg for arg in error.args)


def name_of(func: Any) -> str:
    name = func if isinstance(func, str) else str(getattr(func, "__name__", None) or getattr(func, "name", func))
    return name.strip("_") if name.startswith("_") else name


def refuse(func: Any, why: str = "is not known to act on each row by itself", instead: str = "") -> TypeError:
    """The error for what is refused."""
    name = name_of(func)
    return TypeError(
        f"{name} {why}, and a row stands for many (subgraph, node) pairs, so plans would give different results: "
        f"{instead or _INSTEAD.get(name, _ALONE)}"
    )


def check_devices(plan: torch.device, tensors: Iterable[Any]) -> None:
    """Refuse weights of a model on another device than the plan's."""
    for tensor in tensors:
        if isinstance(tensor, Tensor) and tensor.device != plan and tensor.ndim:  # single numbers may be on the CPU
            raise RuntimeError(
                f"Expected model and plan on one device, got the model on {tensor.device} and the plan on {plan}: use "
                f"plan.to({str(tensor.device)!r})"
            )


def check_precision(plan: torch.dtype, tensors: Iterable[Any], error: RuntimeError) -> None:
    """Whether what failed are weights of another precision than the plan's, such as those of a model made double since."""
    for tensor in tensors if plan.is_floating_point and "dtype" in str(error) else ():
        if isinstance(tensor, nn.Parameter) and tensor.is_floating_point() and tensor.dtype != plan:
            raise RuntimeError(
                f"Expected model and plan in one precision, got the model in {tensor.dtype} and the plan in {plan}: make the "
                f"plan with the model as it is now (after model.double(), say)"
            ) from error


def check_gradients() -> None:
    """An autograd.Function sees no tensor in Rows: whatever it computes of them would have no gradient.

    Its forward pass is the one place where PyTorch turns off both directions of differentiation, other than inference mode.
    """
    if not torch._C._is_fwd_grad_enabled() and not torch.is_inference_mode_enabled():
        raise TypeError(
            "Expected tensors inside a torch.autograd.Function, got Rows, whose gradients it would lose: checkpoint with "
            "use_reentrant=False, use enfa.CountedBatchNorm instead of SyncBatchNorm (it is summed over processes, too), or "
            "write h.of(Function.apply(h.value)) for what acts on each row by itself"
        )
