"""Keyed dropout draws the masks of the plain one, forwards and backwards."""

import numpy
import pytest
import torch
from one_table import counted_rows
from torch import nn


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("p", [0.1, 0.5, numpy.float32(0.3)])
@pytest.mark.parametrize(("rows", "channels"), [(1, 1), (40, 130), (0, 3), (3, 0)])
def test_draws_the_same_masks(check, p: float, rows: int, channels: int, dtype: torch.dtype) -> None:
    module, x = nn.Dropout(p), torch.randn(rows, channels, dtype=dtype)
    identity, results = torch.randint(-(2**62), 2**62, (rows,)), []
    for device in ("cpu", check.device):
        given, who = x.to(device, copy=True).requires_grad_(), identity.to(device)

        def twice(given=given, who=who):
            torch.manual_seed(5)
            return module(module(counted_rows(given, identity=who))).value  # two masks, before the first one's way back

        if results:
            out = twice()
            # a row of no entries has no kernel
            assert (type(out.grad_fn).__name__ == "_DropoutBackward") == (rows > 0)
        else:
            with check.plainly():
                out = twice()
        results.append([out, *torch.autograd.grad(out.square().sum(), given)])
    if rows * channels > 1:
        assert 0 < int((results[0][0] == 0).sum()) < rows * channels
    for exact, found in zip(*results):
        rounding = {torch.float32: 1e-6, torch.bfloat16: 2**-6}[dtype]  # of a square, and of two factors on each way
        torch.testing.assert_close(found.cpu(), exact, rtol=rounding, atol=0)
