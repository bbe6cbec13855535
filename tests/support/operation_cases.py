"""Arguments for every operation that Rows allow: the name of an operation -> calls, as ``lambda`` of its function."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
from small_bag import values
from torch import Tensor

Call = Callable[[Callable, Any], Any]
_WEIGHT = values(8, 8, seed=9)


def operands(count: int, width: int) -> dict[str, Tensor]:
    """Values to be made Rows of: two of numbers, one axis, three axes, truths, categories."""
    h = values(count, width)
    return {
        "h": h, "g": values(count, width, seed=1), "one": values(count, seed=2), "three": values(count, 2, width, seed=3),
        "four": values(count, 2, 3, width, seed=4), "other": values(count, width, 3, seed=5), "yes": h > 0.5, "no": h > 0.3,
        "kind": (h * 5).long(),
    }  # fmt: skip


def shared(width: int) -> SimpleNamespace:
    """The same for all rows."""
    return SimpleNamespace(
        w=_WEIGHT[:width, :width], b=_WEIGHT[0, :width], b1=_WEIGHT[:1, :width], wide=_WEIGHT[:1, :width].expand(6, width),
        scalar=torch.tensor(0.4, dtype=torch.float64), bilinear=values(3, width, width), index=torch.tensor([2, 0]),
        table=values(5, 3), mask=torch.arange(width) % 2 == 0, width=width,
    )  # fmt: skip


ONE: list[Call] = [lambda f, o: f(o.h), lambda f, o: f(o.three), lambda f, o: f(o.one)]
TWO: list[Call] = [
    lambda f, o: f(o.h, o.g), lambda f, o: f(o.h, o.b), lambda f, o: f(o.h, o.b1), lambda f, o: f(o.h, o.wide),
    lambda f, o: f(o.h, o.scalar), lambda f, o: f(o.b, o.h), lambda f, o: f(o.one, o.scalar), lambda f, o: f(o.three, o.b),
]  # fmt: skip
INTO = TWO[:5] + TWO[6:]  # Rows are what is written into
NUMBER: list[Call] = [lambda f, o: f(o.h, 2.0), lambda f, o: f(o.one, 0.5)]
TRUTHS: list[Call] = [lambda f, o: f(o.yes, o.no), lambda f, o: f(o.yes, o.mask)]
REDUCED: list[Call] = [
    lambda f, o: f(o.h, 1), lambda f, o: f(o.h, -1), lambda f, o: f(o.h, dim=1), lambda f, o: f(o.three, dim=2),
    lambda f, o: f(o.three, 1),
]  # fmt: skip
KEPT: list[Call] = [lambda f, o: f(o.h, 1, True), lambda f, o: f(o.h, dim=-1, keepdim=True)]
TUPLE: list[Call] = [lambda f, o: f(o.three, (1, 2)), lambda f, o: f(o.three, dim=[-1, 1], keepdim=True)]
SWAP: list[Call] = [lambda f, o: f(o.three, 1, 2), lambda f, o: f(o.three, -1, -2)]
PARTS: list[Call] = [lambda f, o: f(o.h, 2, 1), lambda f, o: f(o.h, 2, dim=-1), lambda f, o: f(o.three, 2, dim=2)]
BESIDE: list[Call] = [
    lambda f, o: f([o.h, o.g], 1), lambda f, o: f((o.h, o.g), dim=-1), lambda f, o: f([o.three, o.three], dim=2),
]  # fmt: skip


def _each(listed: dict[str, list[Call]]) -> dict[str, list[Call]]:
    return {name: calls for names, calls in listed.items() for name in names.split()}


CASES: dict[str, list[Call]] = _each({
    "acosh": [lambda f, o: f(o.h + 1.0)], "threshold threshold_": [lambda f, o: f(o.h, 0.5, 0.1)],
    "clamp_min clamp_max clamp_min_ clamp_max_ full_like fill_": NUMBER,
    "clamp clip": [lambda f, o: f(o.h, 0.3, 0.6), lambda f, o: f(o.h, min=o.b), lambda f, o: f(o.h, o.g)],
    "clamp_ clip_": [lambda f, o: f(o.h, 0.3, 0.6), lambda f, o: f(o.h, max=0.4)],
    "prelu": [lambda f, o: f(o.h, o.b), lambda f, o: f(o.h - 0.5, o.b[:1]), lambda f, o: f(o.three, o.b[:2])],
    "where": [
        lambda f, o: torch.where(o.yes, o.h, o.g), lambda f, o: o.h.where(o.yes, o.b), lambda f,
        o: torch.where(o.mask, o.h, 0.0),
    ],
    "lerp": [lambda f, o: f(o.h, o.g, 0.3), lambda f, o: f(o.h, o.b1, o.g)], "lerp_": [lambda f, o: f(o.h, o.g, 0.3)],
    "addcmul addcdiv": [lambda f, o: f(o.h, o.g, o.b), lambda f, o: f(o.b, o.h, o.g, value=2.0)],
    "addcmul_ addcdiv_": [lambda f, o: f(o.h, o.g, o.b)],
    "masked_fill masked_fill_": [lambda f, o: f(o.h, o.yes, 0.0), lambda f, o: f(o.h, o.mask, 0.0)],
    "to type": [lambda f, o: f(o.h, torch.float32)], "type_as": [lambda f, o: f(o.kind, o.w), lambda f, o: f(o.kind, o.h)],
    "logical_not bitwise_not __invert__": [lambda f, o: f(o.yes)], "__pow__ pow float_power __rpow__": TWO[:5] + NUMBER,
    # along an axis
    "sum mean nansum nanmean amax amin logsumexp": REDUCED + KEPT + TUPLE, "all any": REDUCED + KEPT,
    "count_nonzero": REDUCED, "prod": REDUCED + KEPT, "argmax argmin": REDUCED + KEPT,
    "max min": REDUCED + KEPT + TWO[:3] + [lambda f, o: f(o.h, other=o.g)],
    "var std": [*REDUCED, lambda f, o: f(o.h, 1, False), lambda f, o: f(o.h, dim=1, correction=0, keepdim=True)],
    "var_mean std_mean": REDUCED, "softmax log_softmax softmin cumsum cumprod logcumsumexp": REDUCED,
    "norm vector_norm": [
        lambda f, o: f(o.h, 2, 1), lambda f, o: f(o.h, 3, dim=-1), lambda f, o: f(o.h, 1, -1, True), lambda f,
        o: f(o.three, 2, dim=(1, 2)),
    ],
    "normalize": [lambda f, o: f(o.h), lambda f, o: f(o.h, 1.0, -1), lambda f, o: f(o.three, dim=2)],
    "sort argsort": [lambda f, o: f(o.h), lambda f, o: f(o.h, 1, True), lambda f, o: f(o.three, dim=1, descending=True)],
    "squeeze": [
        lambda f, o: f(o.h[:, :1], 1), lambda f, o: f(o.h[:, :1], dim=-1), lambda f, o: f(o.three[:, :1, :1], (1, 2)),
    ],
    "select": [lambda f, o: f(o.h, 1, 2), lambda f, o: f(o.three, dim=-1, index=0)],
    "narrow": [lambda f, o: f(o.h, 1, 1, 2), lambda f, o: f(o.three, dim=2, start=0, length=2)],
    "unflatten": [lambda f, o: f(o.h, 1, (2, -1)), lambda f, o: f(o.h, -1, (2, o.width // 2))],
    "index_select": [lambda f, o: f(o.h, 1, o.index), lambda f, o: f(o.three, dim=-1, index=o.index)], "chunk": PARTS,
    "tensor_split": PARTS, "split": [*PARTS, lambda f, o: f(o.h, [1, o.width - 1], 1)],
    "roll": [lambda f, o: f(o.h, 1, 1), lambda f, o: f(o.three, (1, 2), dims=(1, 2))],
    "repeat_interleave": [lambda f, o: f(o.h, 2, 1), lambda f, o: f(o.h, 2, dim=-1)],
    "flip": [lambda f, o: f(o.h, [1]), lambda f, o: f(o.three, dims=(1, 2))],
    "unbind": [lambda f, o: f(o.h, 1), lambda f, o: f(o.three, dim=-1)],
    "glu": [lambda f, o: f(o.h), lambda f, o: f(o.three, 1), lambda f, o: f(o.three, dim=-1)],
    # shapes
    "reshape": [
        lambda f, o: f(o.h, (-1, 2, o.width // 2)), lambda f, o: f(o.three, (o.three.size(0), -1)), lambda f,
        o: f(o.h[:, :1], (-1,)),
    ],
    "view": [
        lambda f, o: f(o.h, -1, 2, o.width // 2), lambda f, o: f(o.three, o.three.shape[0], -1), lambda f,
        o: f(o.h, (*o.h.shape[:-1], 2, -1)),
    ],
    "expand": [lambda f, o: f(o.h[:, :1], -1, 5), lambda f, o: f(o.h[:, None], (o.h.size(0), 3, -1))],
    "repeat": [lambda f, o: f(o.h, 1, 2), lambda f, o: f(o.three, (1, 2, 1))],
    "permute": [lambda f, o: f(o.three, (0, 2, 1)), lambda f, o: f(o.three, dims=(-3, 2, 1))],
    "flatten": [
        lambda f, o: f(o.three, 1), lambda f, o: f(o.four, start_dim=2), lambda f, o: f(o.four, 1, 2), lambda f,
        o: f(o.four, end_dim=2, start_dim=-3),
    ],
    "unsqueeze": [lambda f, o: f(o.h, 1), lambda f, o: f(o.h, -1), lambda f, o: f(o.h, dim=-2), lambda f, o: f(o.one, 1)],
    "transpose": [*SWAP, lambda f, o: f(o.three, dim0=1, dim1=2)], "swapdims": SWAP,
    "swapaxes": [*SWAP, lambda f, o: f(o.three, axis0=1, axis1=2)], "movedim": SWAP,
    "moveaxis": [lambda f, o: f(o.four, (1, 2), (2, 1)), lambda f, o: f(o.three, source=1, destination=-1)],
    "cat concat concatenate": [
        *BESIDE, lambda f, o: f(tensors=[o.h, o.g], dim=1), lambda f, o: f([o.h, o.three[:, 0], o.g], axis=1),
    ],
    "stack": [*BESIDE, lambda f, o: f([o.h, o.g], -2), lambda f, o: f([o.one, o.one], 1)],
    "hstack": [lambda f, o: f([o.h, o.g]), lambda f, o: f([o.three, o.three])],
    "gather": [lambda f, o: f(o.h, 1, o.h.argmax(1, keepdim=True)), lambda f, o: f(o.h, dim=-1, index=o.h.argsort(1))],
    "cosine_similarity": [
        lambda f, o: f(o.h, o.g), lambda f, o: f(o.h, o.b1, dim=-1), lambda f, o: f(o.three, o.three * 2, 2),
    ],
    "pairwise_distance": [
        lambda f, o: f(o.h, o.g), lambda f, o: f(o.h, o.b1, 1.0), lambda f, o: f(o.three, o.three * 2, keepdim=True),
    ],
    "pad": [
        lambda f, o: f(o.h, (1, 2)), lambda f, o: f(o.three, pad=(0, 1, 1, 0), value=3.0), lambda f,
        o: f(o.three, [1, 1], "reflect"),
    ],
    "__getitem__": [
        lambda f, o: o.h[:, 1], lambda f, o: o.h[:, 1:3], lambda f, o: o.h[..., -1], lambda f, o: o.h[:, None], lambda f,
        o: o.three[..., 0, :], lambda f, o: o.h[:, [2, 0]], lambda f, o: o.h[:, o.index], lambda f, o: o.h[:, o.mask],
        lambda f, o: o.three[:, 1, o.index],
    ],
    # with weights
    "linear": [
        lambda f, o: f(o.h, o.w), lambda f, o: f(o.three, o.w, o.b), lambda f, o: f(input=o.h, weight=o.w, bias=o.b),
    ],
    "matmul": [
        lambda f, o: f(o.h, o.w), lambda f, o: f(o.three, o.w), lambda f, o: f(o.three, o.other), lambda f, o: f(o.h, o.b),
    ],
    "__matmul__": [lambda f, o: o.h @ o.w, lambda f, o: o.three @ o.other, lambda f, o: o.h @ o.b],
    "mm": [lambda f, o: f(o.h, o.w), lambda f, o: f(o.h, mat2=o.w)], "mv": [lambda f, o: f(o.h, o.b)],
    "bmm": [lambda f, o: f(o.three, o.other)],
    "einsum": [
        lambda f, o: f("nc,cd->nd", o.h, o.w), lambda f, o: f("nc, nc -> n", o.h, o.g), lambda f,
        o: f("nhc,ncd->nhd", o.three, o.other), lambda f, o: f("cd,nd->nc", [o.w, o.h]),
    ],
    "bilinear": [lambda f, o: f(o.h, o.g, o.bilinear), lambda f, o: f(o.h, o.g, o.bilinear, o.b[:3])],
    "embedding": [
        lambda f, o: f(o.kind, o.table), lambda f, o: f(o.kind[:, 0], o.table, padding_idx=1), lambda f,
        o: f(o.kind, o.table, max_norm=9.0),
    ],
    "embedding_bag": [lambda f, o: f(o.kind, o.table), lambda f, o: f(o.kind, o.table, mode="sum", per_sample_weights=o.h)],
    "one_hot": [lambda f, o: f(o.kind, 5), lambda f, o: f(o.kind[:, 0], num_classes=7)],
    "layer_norm": [
        lambda f, o: f(o.h, (o.width,)), lambda f, o: f(o.h, (o.width,), o.b, bias=o.b), lambda f,
        o: f(o.three, [2, o.width]),
    ],
    "rms_norm": [lambda f, o: f(o.h, (o.width,)), lambda f, o: f(o.three, normalized_shape=[2, o.width])],
    "group_norm": [lambda f, o: f(o.h, 2), lambda f, o: f(o.three, 1, o.b[:2])],
    "local_response_norm": [lambda f, o: f(o.three, 2)],
})  # fmt: skip
_BOOLEAN = ("bitwise_and", "bitwise_or", "bitwise_xor", "and", "or", "xor", "rand", "ror", "rxor")


def cases(name: str, one: set[str], in_place: bool) -> list[Call]:
    """The calls for an operation; ``one``: names of those that take Rows and nothing else."""
    for spelled in (f"{name}_",) if in_place else (name, f"__{name}__"):
        if spelled in CASES:
            return CASES[spelled]
    if name in one:
        return ONE
    return TRUTHS if name in _BOOLEAN else INTO if in_place else TWO
