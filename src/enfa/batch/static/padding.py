"""Plans padded to a few sizes, so that one captured step serves many batches."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from enfa.plan.arrays import Places
from enfa.plan.derived.pack import places
from enfa.plan.derived.slots import END, Slot, rows_of, slots_of
from enfa.plan.mould import Mould
from enfa.plan.table import Plan

__all__ = ["Bucket", "Form", "pad_plan"]


class Form:
    """What all plans of one dataset, for one model and one number of graphs, have in common: everything but sizes."""

    def __init__(self, plan: Plan) -> None:
        """``plan``: prepared and lean; any will do."""
        if not plan.countable:
            raise ValueError("Expected a plan of at least two nodes and subgraphs to pad others like it, got one with fewer")
        self.plan, self.num_graphs = plan, plan.num_graphs
        slots, leaves = slots_of(plan), plan.leaves()
        self.slots = [slots[id(t)] for t in leaves]
        self.valued = [not t.is_meta for t in leaves]
        tensors, self._places = plan.tensors(), Places(plan)
        self.kinds = [(t.dtype, t.shape[1:]) for t in tensors]
        self._of_tensors = [slots[id(t)] for t in tensors]
        where: dict[str, tuple[int, int, int]] = {}
        for k, slot in enumerate(self._of_tensors):
            if slot.size is not None:
                where.setdefault(slot.size, (k, slot.axis, slot.more))
        self.names = list(where)
        self.where = list(where.values())
        read = {f.removeprefix("last ") for s in self._of_tensors for f in _fills(s) if isinstance(f, str)}
        # a table that padding points into needs a padding row to point to; only entries of lists go without
        self._spare = np.array([name in read for name in self.names], np.int64)

        tables = [rows_of(plan, number) for number in range(len(plan.tables))]
        self.rows = np.array([tables.count(name) for name in self.names], np.int64)
        """int64 [names]: how many tables have this many rows, which is what a step costs."""

    def tensors(self, plan: Plan) -> list[Tensor] | None:
        """The arrays of a prepared plan, lean or not, that a lean one has; None where it differs in more than sizes."""
        found = self._places.tensors(plan)
        return found if found is not None and self.takes(plan, found) else None

    def sizes(self, tensors: list[Tensor]) -> np.ndarray:
        """int64 [names]: the least sizes that a plan with these arrays fits into."""
        return self.with_spare([tensors[k].shape[axis] - more for k, axis, more in self.where])

    def with_spare(self, sizes: list[int]) -> np.ndarray:
        """So many of each of ``names``, and the padding rows that must be there."""
        return np.array(sizes, np.int64) + self._spare

    def takes(self, plan: Plan, tensors: list[Tensor]) -> bool:
        """Whether a plan differs in nothing but sizes. One that BatchNorm would refuse is not padded either."""
        return (
            plan.num_graphs == self.num_graphs
            and plan.countable
            and len(tensors) == len(self.kinds)
            and all(t.dtype == dtype for t, (dtype, _) in zip(tensors, self.kinds))
        )


def _fills(slot: Slot) -> tuple[Any, ...]:
    return slot.fill if isinstance(slot.fill, tuple) else (slot.fill,)


@dataclass(frozen=True)
class _Part:
    """One array of the block."""

    begin: int
    end: int
    dtype: torch.dtype
    shape: tuple[int, ...]
    along: bool  # whether it is padded along its second axis
    fill: Any  # None: the last value again

    def holds(self, tensor: Tensor) -> bool:
        """Whether there is room for an array of a plan."""
        if tensor.dtype != self.dtype:
            return False
        return tensor.shape[self.along] <= self.shape[self.along] if self.shape else True

    def view(self, block: Tensor) -> Tensor:
        return block[self.begin : self.end].view(self.dtype).reshape(self.shape)

    @property
    def strided(self) -> tuple[torch.dtype, tuple[int, ...], tuple[int, ...], int]:
        """The same in a block of numbers of its type: type, shape, strides, and where it begins."""
        return self.dtype, self.shape, torch.empty(self.shape, device="meta").stride(), self.begin // self.dtype.itemsize


class Bucket:
    """The sizes that plans are padded to, and where each array then stands in a block of ``nbytes`` bytes."""

    def __init__(self, form: Form, sizes: np.ndarray) -> None:
        self.form, self.sizes = form, sizes
        self._named: dict[str, _Part | None] = {}
        self._mould: Mould[Plan] | None = None
        self._leaves: list[Any] = []  # what is made of each, or a tensor that has no values
        named = dict(zip(form.names, sizes.tolist()))
        shapes = [_shape(t, slot, named) for t, slot in zip(form.plan.leaves(), form.slots)]
        of_meta = iter([torch.empty(s, dtype=t.dtype, device="meta") for t, s in zip(form.plan.leaves(), shapes)])
        self.skeleton: Plan = form.plan.map(lambda _: next(of_meta)).of_any_size()
        layout = [(t.dtype, s) for t, s, valued in zip(form.plan.leaves(), shapes, form.valued) if valued]
        found, self.nbytes = places(tuple(layout))
        slots = [slot for slot, valued in zip(form.slots, form.valued) if valued]
        self.parts = [
            _Part(at, at + size, dtype, shape, slot.axis == 1, _fill(slot, named))
            for (at, size), (dtype, shape), slot in zip(found, layout, slots)
        ]

    def arrays(self, block: np.ndarray) -> list[np.ndarray]:
        """The arrays of a block of bytes, to be written into."""
        return [block[p.begin : p.end].view(_numpy(p.dtype)).reshape(p.shape) for p in self.parts]

    def write(self, tensors: list[Tensor], arrays: list[np.ndarray], places: Sequence[int] | None = None) -> None:
        """Copy a plan's arrays, or those of some places, into a block, and pad them. They must fit."""
        for tensor, k in zip(tensors, range(len(arrays)) if places is None else places):
            part, out, values = self.parts[k], arrays[k], tensor.numpy()
            if values.shape == part.shape:
                out[...] = values
            elif part.along:
                out[:, : values.shape[1]] = values
                out[:, values.shape[1] :] = part.fill
            else:
                out[: len(values)] = values
                out[len(values) :] = values[-1] if part.fill is None else part.fill

    def view(self, block: Tensor) -> Plan:
        """The plan in a block, on whatever device that is."""
        if self._mould is None:
            parts, leaves = iter(self.parts), self.skeleton.leaves()
            self._leaves = [next(parts).strided if valued else leaf for leaf, valued in zip(leaves, self.form.valued)]
            self._mould = Mould(self.skeleton)  # the last of the two: another thread may look at its first batch
        block = block[: self.nbytes]
        of = {dtype: block.view(dtype) for dtype in {part.dtype for part in self.parts}}
        first = {dtype: whole.storage_offset() for dtype, whole in of.items()}
        found = [
            leaf if isinstance(leaf, Tensor) else of[leaf[0]].as_strided(leaf[1], leaf[2], first[leaf[0]] + leaf[3])
            for leaf in self._leaves
        ]
        return self._mould.filled(found)

    def part(self, name: str) -> _Part | None:
        """Where the plan's array of this name stands in a block; None where it has none."""
        if name not in self._named:
            leaf, tensors = getattr(self.form.plan, name), self.form.plan.tensors()
            self._named[name] = next((part for part, t in zip(self.parts, tensors) if t is leaf), None)
        return self._named[name]


def _numpy(dtype: torch.dtype) -> np.dtype:
    return torch.empty(0, dtype=dtype).numpy().dtype


def _shape(tensor: Tensor, slot: Slot, sizes: Mapping[str, int]) -> tuple[int, ...]:
    shape = list(tensor.shape)
    if slot.size is not None and slot.size in sizes:  # a size that only arrays without values have does not matter
        shape[slot.axis] = sizes[slot.size] + slot.more
    return tuple(shape)


def _fill(slot: Slot, sizes: Mapping[str, int]) -> Any:
    if slot.fill == END:
        return None
    found = [sizes[f.removeprefix("last ")] - 1 if isinstance(f, str) else f for f in _fills(slot)]
    return np.array(found)[:, None] if slot.axis == 1 and len(found) > 1 else found[0]


def pad_plan(plan: Plan, sizes: Mapping[str, int] | None = None) -> Plan:
    """A prepared, lean plan on the CPU with larger arrays that computes the same: outputs, gradients and buffers.

    ``sizes``: how long to make what; names are ``Form(plan).names``. What is left out gets as long as it must be.
    """
    form, tensors = Form(plan), plan.tensors()
    least = form.sizes(tensors)
    wanted = np.array([(sizes or {}).get(name, 0) for name in form.names], np.int64)
    unknown = set(sizes or ()) - set(form.names)
    if unknown:
        raise ValueError(f"Expected sizes that the plan has, got {', '.join(sorted(unknown))}")
    if sizes and any(0 < w < s for w, s in zip(wanted, least)):
        short = [f"{n} >= {s}" for n, w, s in zip(form.names, wanted, least) if 0 < w < s]
        raise ValueError(f"Expected {', '.join(short)} to pad a plan, got less")
    bucket = Bucket(form, np.maximum(wanted, least))
    block = torch.empty(bucket.nbytes, dtype=torch.uint8)
    bucket.write(tensors, bucket.arrays(block.numpy()))
    return bucket.view(block)
