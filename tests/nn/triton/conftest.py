"""These tests run on a GPU, or in Triton's interpreter: ``tests/nn/test_triton.py`` starts them there."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from enfa.nn import triton

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
collect_ignore_glob = [] if find_spec("triton") and triton.accelerated(torch.empty(0, device=DEVICE)) else ["*test_*.py"]

if not collect_ignore_glob and DEVICE == "cpu":
    from triton import language
    from triton.runtime import interpreter

    def _patch_once(fn: object, patch: Callable = interpreter._patch_lang) -> object:
        """The interpreter goes through the whole language whenever a kernel calls a function: a quarter of its time."""
        return patch(fn) if any(language.core.is_builtin(one.load) for one in (language, language.core)) else None

    interpreter._patch_lang = _patch_once

    def _dot(self: Any, a: Any, b: Any, *rest: Any, dot: Callable = interpreter.InterpreterBuilder.create_dot) -> Any:
        """The interpreter keeps bfloat16 as integers, and multiplies these."""
        wide = (self.cast_impl(x, language.float32) if x.dtype.scalar == language.bfloat16 else x for x in (a, b))
        return dot(self, *wide, *rest)

    def _cast(self: Any, value: Any, to: Any, cast: Callable = interpreter.InterpreterBuilder.cast_impl) -> Any:
        """The interpreter cuts off what it should round."""
        if (value.dtype.scalar, to.scalar) != (language.float32, language.bfloat16):
            return cast(self, value, to)
        rounded = torch.from_numpy(value.data.copy()).bfloat16().view(torch.int16).numpy().view("uint16")
        return interpreter.TensorHandle(rounded, language.bfloat16)

    interpreter.InterpreterBuilder.create_dot, interpreter.InterpreterBuilder.cast_impl = _dot, _cast


class Check:
    """What our kernels compute, beside what plain operators compute on the CPU."""

    device = DEVICE

    @staticmethod
    @contextmanager
    def plainly() -> Iterator[None]:
        """In here, what is computed on the CPU is computed by plain operators."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(triton, "_interpreted", lambda: False)
            assert not triton.accelerated(torch.empty(0))
            yield

    @staticmethod
    def near(found: list[Tensor], exact: list[Tensor], most: float) -> None:
        """As a whole, each tensor within so much of the other's size, or of 1 where that is less: what cancels is no size."""
        for value, reference in zip(found, exact, strict=True):
            assert value.shape == reference.shape
            value, reference = value.detach().double().cpu(), reference.detach().double()
            away, size = float((value - reference).norm()), max(float(reference.norm()), 1.0)
            assert away <= most * size, f"{away / size:.1e} away of {most:.1e}"


@pytest.fixture
def check() -> Check:
    torch.manual_seed(0)
    return Check()
