"""Launching our kernels: what Triton's dispatcher finds out for every launch is kept from one to the next.

The dispatcher binds arguments, works out what the kernel is to be specialised to and looks that up, in Python: some 40 µs, and
a training step has a hundred launches that differ in nothing but addresses. Here a launch is looked up by what
specialisation depends on (types, whether addresses and numbers are multiples of 16, whether numbers are 1, and all constants),
and then goes to the compiled kernel itself, with addresses instead of tensors: Triton's launcher would ask each tensor for its
own, and the driver whether it is one of a device. Where that cannot be done (in Triton's interpreter, under a profiler's hooks,
with a Triton whose compiled kernels are called otherwise) the dispatcher does it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial, reduce
from operator import attrgetter, or_
from typing import Any

import torch
import triton
from torch import Tensor

from enfa.cache import triton_in_folder
from enfa.nn.triton.launcher import called
from enfa.nn.triton.rehearsal import here

__all__ = ["Kernel", "Launch", "cdiv", "kernel", "next_power_of_2"]

try:  # until Triton 3.4 they belong to the class of compiled kernels
    from triton.knobs import runtime as _hooks
except ImportError:
    from triton.compiler import CompiledKernel as _hooks


def cdiv(x: int, y: int) -> int:
    """x / y, rounded up. Triton's own costs microseconds: it may be called in a kernel, too."""
    return -(-x // y)


def next_power_of_2(n: int) -> int:
    return 1 << (n - 1).bit_length() if n > 0 else 0


def _watched() -> bool:
    """Whether something wants to see every launch: a chain of hooks, or one."""
    enter, leave = _hooks.launch_enter_hook, _hooks.launch_exit_hook
    return bool(getattr(enter, "calls", enter) or getattr(leave, "calls", leave))


def _kind(number: Any) -> Any:
    """What a kernel is specialised to, of a number; never less than Triton distinguishes."""
    if type(number) is int:
        return (number == 1) + 2 * (number % 16 == 0) + 4 * (-(2**31) <= number < 2**31)
    assert type(number) in _NUMBERS, "tensors come first, and numbers are plain ones"
    return type(number)


_NUMBERS = (int, float, bool, type(None))
_dtype, _on_device = attrgetter("dtype"), attrgetter("is_cuda")


class Launch:
    """A kernel and its constants: ``launch(grid, tensors and numbers)``."""

    def __init__(self, of: Kernel, given: dict[str, Any]) -> None:
        self.kernel, self.given = of, given
        self.constants = tuple(given.get(name, default) for name, default in of.constants.items())
        self.known: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def __call__(self, grid: tuple[int, ...], *args: Any) -> None:
        of = self.kernel
        if here.kernels is not None:  # a rehearsal
            here.kernels[id(of.jit)] = of.jit
            of.jit.warmup(*args, grid=grid, **self.given)
            return
        if not of.direct or of.jit.pre_run_hooks or _watched():
            of.dispatched(grid, args, self.given)
            return
        if of.tensors is None:
            of.seen(args)
        tensors, numbers, device = args[: of.tensors], args[of.tensors :], torch._C._cuda_getDevice()
        places = [*map(Tensor.data_ptr, tensors)]
        kinds = [int if type(n) is int and n >> 31 == 0 else _kind(n) for n in numbers] if of.plain else map(_kind, numbers)
        key = (device, *map(_dtype, tensors), *kinds)
        if reduce(or_, places) % 16:  # one of them at least does not begin at a multiple of 16
            key += tuple(place % 16 == 0 for place in places)
        known = self.known.get(key)
        if known is None:
            found = called(of.dispatched(grid, args, self.given), len(args) + len(self.constants))
            of.direct = found is not None
            if found is not None:
                self.known[key] = found
            return
        run, between, as_one = known
        x, y, z = (*grid, 1, 1)[:3]
        stream = torch._C._cuda_getCurrentRawStream(device)
        # of a tensor that is not on a device, Triton says so
        all_of_them = (*(places if all(map(_on_device, tensors)) else tensors), *numbers, *self.constants)
        if as_one:
            run(x, y, z, stream, *between, all_of_them)
        else:
            run(x, y, z, stream, *between, *all_of_them)


class Kernel:
    """A kernel that is launched as Triton's are: ``kernel[grid](tensors, numbers, CONSTANT=...)``, constants by name.

    Where the constants are known from launch to launch, ``kernel.launch(CONSTANT=...)`` is what takes grid and arguments.
    """

    def __init__(self, function: Callable, **options: Any) -> None:
        self.jit: Any = triton.jit(function, **options) if options else triton.jit(function)
        parameters = inspect.signature(function).parameters.values()
        self.constants = {p.name: p.default for p in parameters if "constexpr" in str(p.annotation)}
        self.direct = isinstance(self.jit, triton.runtime.JITFunction)
        self._names, self._not_specialised = [p.name for p in parameters], options.get("do_not_specialize", ())
        self.tensors: int | None = None  # how many there are, in front of numbers
        self.plain = False  # of numbers, nothing matters but whether they are int32
        self._launches: dict[tuple[Any, ...], Launch] = {}
        assert self._names[-len(self.constants) :] == list(self.constants), "constants come last"

    def __getitem__(self, grid: tuple[int, ...]) -> Callable[..., None]:
        return partial(self._launch, grid)

    def launch(self, **given: Any) -> Launch:
        key = (*given, *given.values())
        found = self._launches.get(key)
        if found is None:
            found = self._launches[key] = Launch(self, given)
        return found

    def _launch(self, grid: tuple[int, ...], *args: Any, **given: Any) -> None:
        (self._launches.get((*given, *given.values())) or self.launch(**given))(grid, *args)

    def seen(self, args: tuple[Any, ...]) -> None:
        """What is known of a launch's arguments with the first of them."""
        count = sum(not isinstance(arg, _NUMBERS) for arg in args)
        self.plain = all(name in self._not_specialised for name in self._names[count : len(args)])
        self.tensors = count

    def dispatched(self, grid: tuple[int, ...], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        with triton_in_folder():
            return self.jit[grid](*args, **given)


def kernel(function: Callable | None = None, **options: Any) -> Any:
    """``triton.jit`` of a kernel that is launched; what kernels call is ``triton.jit``'s as ever."""
    return partial(Kernel, **options) if function is None else Kernel(function, **options)
