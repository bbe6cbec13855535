"""Linears, sums and norms of Rows that are held back, so that our own kernels compute several of them at once.

A linear adds other rows to its result on the way, and takes the ReLU behind them; with a norm behind it, it is one operation.
A wide linear normalises what it reads: rows between a norm and a linear are not written in float32.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from enfa.nn.ops.counted import Running, Shifted, uncounted_rows, update_running
from enfa.nn.ops.function import applied
from enfa.nn.ops.linear import WIDE, fusable, linear_of
from enfa.nn.ops.normalise import normalise
from enfa.nn.rowwise.held import Held
from enfa.nn.rowwise.rows import Rows
from enfa.nn.triton import accelerated

if TYPE_CHECKING:
    from enfa.nn.triton.linears.wide import Normed

__all__ = ["HeldLinear", "HeldNorm", "HeldSum", "waiting"]


def waiting(rows: Rows) -> Held | None:
    """What computes these rows, where nothing has asked for its values so far, and it was called as it would be here."""
    held = rows.held
    return None if held is None or rows.activated or held.found or not held.as_now() else held


class Product(NamedTuple):
    """What our own kernels compute at once: ``x @ weight.T + bias + plus``, of x as it is ``before`` or behind a norm."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    plus: Tensor | None
    before: Normed | None


class HeldLinear(Held):
    """``rows @ weight.T + bias``."""

    def __init__(self, rows: Rows, weight: Tensor, bias: Tensor | None) -> None:
        super().__init__([rows], weight.shape[0], weight, bias)
        self.weight, self.bias = weight, bias
        self._fits: bool | None = None
        if self.mixed is not None:
            self.dtype = torch.bfloat16

    def computed(self, relu: bool) -> Tensor:
        return self.plus(None, relu)

    def plus(self, plus: Tensor | None, relu: bool) -> Tensor:
        """With other rows added to it."""
        if not self.fits() or self._few():
            return linear_of(self.reads[0].value, self.weight, self.bias, relu, plus)
        x, weight, bias, plus, before = self.product(plus)
        return linear_of(x, weight, bias, relu, plus, before)

    def fits(self) -> bool:
        """Whether our own kernels compute it."""
        if self._fits is None:
            rows = self.reads[0]
            self._fits = fusable(rows.bag.feature, rows.dtype, rows.width, self.weight, self.bias, self.mixed is not None)
        return self._fits

    def _few(self) -> bool:
        from enfa.nn.triton.linears.small import MOST_ROWS

        (rows,) = self.reads
        return rows.bag.num_rows(rows.number) <= MOST_ROWS

    def _normalises(self) -> bool:
        """Whether its kernel is fast enough to normalise what it reads: in bfloat16 as long as it reads it once."""
        if self.mixed:
            return self.reads[0].dtype == torch.bfloat16 and max(self.weight.shape) <= 2 * WIDE
        return max(self.weight.shape) > WIDE

    def product(self, plus: Tensor | None = None) -> Product:
        """The same, of rows in front of a norm and ReLU where it can normalise them as it reads them."""
        (rows,) = self.reads
        norm, later = rows.held, None
        if isinstance(norm, HeldNorm) and rows.activated and self._normalises():
            later = norm.later(True)
        x, before = (rows.value, None) if later is None else later
        if self.mixed:
            x = x.to(torch.bfloat16)  # what is added is, by the rule of HeldSum
        return Product(x, self.weight, self.bias, plus, before)


class HeldSum(Held):
    """A linear's result and other rows, as rows of the table ``number``, which the linear's are, too."""

    def __init__(self, linear: Rows, other: Rows, number: int) -> None:
        super().__init__([linear, other], linear.width)
        self.number = number

    @staticmethod
    def of(one: Rows, other: Rows) -> HeldSum | None:
        """Whichever of the two is the linear."""
        bag = one.bag
        if bag is not other.bag or one.dtype != other.dtype or one.ndim != 2 or other.ndim != 2 or one.width != other.width:
            return None
        linears = [isinstance(waiting(rows), HeldLinear) for rows in (one, other)]
        if not any(linears) or one.kind != other.kind or one.number < 0:
            return None
        number = bag.meeting(one, other, "+")
        for rows, plus, linear in ((one, other, linears[0]), (other, one, linears[1])):
            if linear and bag.numbered_alike(rows.number, number):
                return HeldSum(rows, plus, number)
        return None

    def _linear(self) -> HeldLinear | None:
        linear = waiting(self.reads[0])
        return linear if isinstance(linear, HeldLinear) and linear.fits() else None

    def _other(self) -> Tensor:
        return self.reads[1].bag.moved(self.reads[1], self.number)

    def computed(self, relu: bool) -> Tensor:
        plus = self._other()  # first: what the linear reads may be the same rows, or the linear itself
        linear = self._linear()
        if linear is not None:
            return linear.plus(plus, relu)
        found = self.reads[0].value + plus
        return torch.relu(found) if relu else found

    def product(self) -> Product | None:
        """As that of its linear, where there still is one."""
        if self._linear() is None:
            return None
        plus = self._other()
        linear = self._linear()
        return None if linear is None else linear.product(plus)


class HeldNorm(Held):
    """BatchNorm in training: each row counts as often as it stands for something."""

    def __init__(
        self, rows: Rows, weight: Tensor | None, bias: Tensor | None, eps: float, running: Running | None,
        copies: Tensor | None, total: int,
    ) -> None:  # fmt: skip
        super().__init__([rows], rows.width, weight, bias)
        if copies is None:
            copies = rows.bag.tables[rows.number].copies
        assert copies is not None
        self.weight, self.bias, self.eps, self.copies, self.total = weight, bias, eps, copies, total
        self.running = running
        self._later: dict[bool, tuple[Tensor, Normed]] = {}

    def __del__(self) -> None:
        if self.running is not None and not sys.is_finalizing() and not self.stale():
            self.tensor(False)

    def computed(self, relu: bool) -> Tensor:
        running, self.running = self.running, None  # computed a second time, it is the same call
        if running is not None and not self.total:
            if running[2] is not None:
                running[2].add_(1)
            running = None  # of nothing
        return self._fused(relu, running) if self._whole() and accelerated(self.copies) else self._plain(relu, running)

    def _whole(self) -> bool:
        """Our own kernels know no norm that has a weight and no bias, or the other way round."""
        return (self.weight is None) == (self.bias is None)

    def _fused(self, relu: bool, running: Running | None) -> Tensor:
        kernel = _by_kernel(running)
        out, saved, total = self._normed(relu, kernel)
        if running is not None and kernel is None:
            update_running(running, saved[0], saved[2], total)
        return out

    def _normed(
        self, relu: bool, running: tuple[Tensor, Tensor, Tensor, float] | None, later: bool = False
    ) -> tuple[Tensor, Tensor, Tensor]:
        """With the product before it, where nothing has asked for that so far."""
        linears, norms = _kernels()
        rest = (self.weight, self.bias, self.copies, self.eps, relu, running)
        held, product = waiting(self.reads[0]), None
        if isinstance(held, HeldSum) or (isinstance(held, HeldLinear) and held.fits()):
            product = held.product()
        if product is None:
            return norms.counted_norm(self.reads[0].value, *rest, later)
        x, weight, bias, plus, before = product
        return linears.linear_norm(x, weight, bias, *rest, plus=plus, before=before, later=later)

    def later(self, relu: bool) -> tuple[Tensor, Normed] | None:
        """Rows in front of the norm, for kernels that normalise them as they read them; ``relu``: and take the ReLU."""
        from enfa.nn.triton.linears.wide import Normed

        running = _by_kernel(self.running)
        if self.found or not self.as_now() or not self._whole() or (self.running is not None and running is None):
            return None
        if relu not in self._later:
            self.running = None
            x, saved, _ = self._normed(relu, running, later=True)
            self._later[relu] = x, Normed(saved, self.weight, self.bias, self.copies)
        return self._later[relu]

    def _plain(self, relu: bool, running: Running | None) -> Tensor:
        linear, uncounted = waiting(self.reads[0]), uncounted_rows(self.copies)
        rest = (self.copies, uncounted, self.weight, self.bias, self.eps, None, running, relu)
        plain = self.copies.device.type == "cpu" and self.mixed is None
        if plain and isinstance(linear, HeldLinear) and linear.bias is not None:
            x = applied(Shifted, linear.reads[0].value, linear.weight, linear.bias, uncounted)
            return normalise(x, *rest, alone=True)
        return normalise(self.reads[0].value, *rest)


@cache
def _kernels() -> tuple[Any, Any]:
    """Imported where they are called; once, because a statement that imports takes a microsecond each time."""
    from enfa.nn.triton import norm
    from enfa.nn.triton.linears import linear_norm

    return linear_norm, norm


@cache
def _not_counted(device: torch.device) -> Tensor:
    """What kernels count calls in where the module has done so."""
    return torch.zeros((), dtype=torch.int64, device=device)


def _by_kernel(running: Running | None) -> tuple[Tensor, Tensor, Tensor, float] | None:
    """Running statistics that a kernel updates: cumulative averages are not among them."""
    mean, var, calls, momentum = running or (None, None, None, None)
    if mean is None or var is None or momentum is None:
        return None
    return mean, var, _not_counted(mean.device) if calls is None else calls, momentum
