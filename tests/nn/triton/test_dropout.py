"""Keyed dropout draws the masks of the plain one, forwards and backwards."""

import copy

import pytest
import torch

import enfa
from enfa.nn.rows import Rows, rows_in_flight


@pytest.mark.parametrize("p", [0.1, 0.5])
@pytest.mark.parametrize(("rows", "channels"), [(1, 1), (40, 130), (0, 3)])
def test_draws_the_same_masks(check, p: float, rows: int, channels: int) -> None:
    module, x = enfa.KeyedDropout(p), torch.randn(rows, channels)
    identity, results = torch.randint(-(2**62), 2**62, (rows,)), []
    for device in ("cpu", check.device):
        there, given, who = copy.deepcopy(module).to(device), x.to(device, copy=True).requires_grad_(), identity.to(device)

        def twice(module=there, given=given, who=who):
            with rows_in_flight(Rows(torch.ones_like(who), rows, lambda: who, False)):
                return module(module(given))  # two steps, before the first one's way back

        if results:
            out = twice()
        else:
            with check.plainly():
                out = twice()
        results.append([out, *torch.autograd.grad(out.square().sum(), given), there.step])
    if rows > 1:
        assert 0 < int((results[0][0] == 0).sum()) < rows * channels
    for exact, found in zip(*results):
        torch.testing.assert_close(found.cpu(), exact, rtol=1e-6, atol=0)
