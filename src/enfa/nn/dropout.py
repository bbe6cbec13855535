"""Dropout whose masks are a function of the row, so that every plan draws the same."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.overrides import handle_torch_function, has_torch_function_unary

from enfa.nn.recompute import backward_pass, first_step, note_step
from enfa.nn.rows import current_call, rows_of
from enfa.nn.triton import accelerated
from enfa.plan.identity import mix64

__all__ = ["KeyedDropout"]


class KeyedDropout(nn.Module):
    """Dropout with masks drawn from (seed, step, identity of the row, channel).

    Rows that are one row in some plan get one mask in every plan, so all plans stay exact in training. ``step`` counts
    the training calls and is saved with the model: a resumed run continues with the same masks. Outside an executor,
    after pooling, it is ordinary dropout.

    ``independent=True`` draws for every (subgraph, node) pair afresh, as conventional code does. That is defined on the
    full plan only, and refused elsewhere.
    """

    step: Tensor
    seed: Tensor

    def __init__(self, p: float = 0.5, independent: bool = False) -> None:
        super().__init__()
        if not 0.0 <= p < 1.0:
            raise ValueError(f"Expected a dropout probability from 0 to below 1, got {p}")
        self.p, self.independent = p, independent
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))
        self.register_buffer("seed", torch.randint(2**62, ()))

    def forward(self, x: Tensor) -> Tensor:
        if has_torch_function_unary(x):  # Rows of a bag know what they are
            return handle_torch_function(KeyedDropout.forward, (x,), self, x)
        if not self.training or self.p == 0.0:
            return x
        rows = rows_of(self)
        if rows is None:
            return nn.functional.dropout(x, self.p)
        if self.independent:
            if not rows.full:
                raise ValueError("Expected the full plan for independent dropout masks: other plans share rows")
            return nn.functional.dropout(x, self.p)
        identity = rows.identity()
        if len(identity) != len(x):
            raise ValueError(f"Expected {len(identity)} rows in flight, got {list(x.shape)}")
        step = self._next_step()
        if accelerated(x) and x.dtype == torch.float32 and len(x):
            from enfa.nn.triton.dropout import keyed_dropout

            return keyed_dropout(x, identity, step, self.seed, self.p)
        row = mix64(identity, mix64(step, self.seed))
        channel = mix64(torch.arange(x.shape[1], device=x.device))
        drawn = mix64(row[:, None] + channel) >> 11  # 53 bits, from -2**52 on
        keep = drawn >= int((self.p - 0.5) * 2**53)
        return x * keep * (1.0 / (1.0 - self.p))

    def _next_step(self) -> Tensor:
        if backward_pass() != -1:  # what is computed again gets its mask again
            return first_step(self)
        self.step.add_(1)
        note_step(self, self.step, current_call())
        return self.step

    def extra_repr(self) -> str:
        return f"p={self.p}, independent={self.independent}"

    @classmethod
    def convert(cls, module: nn.Module) -> nn.Module:
        """Replace every torch.nn.Dropout in ``module``."""
        if type(module) is nn.Dropout:
            return cls(module.p).train(module.training)
        # not named_children, which leaves out the second place of a module that stands in two
        for name, child in list(module._modules.items()):
            converted = child if child is None else cls.convert(child)
            if converted is not child:
                setattr(module, name, converted)
        return module
