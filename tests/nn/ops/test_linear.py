"""Linears in a row, each with the ReLU after it as one kernel, are what they are one after the other."""

import pytest
import torch
from torch import Tensor, nn

from enfa.nn.ops.linear import fusable, through

ACT, TIED = nn.ReLU(), nn.Linear(5, 5)


class Doubled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


class Backwards(nn.Sequential):
    def forward(self, x: Tensor) -> Tensor:
        for module in reversed(self):
            x = module(x)
        return x


@pytest.mark.parametrize(
    "modules",
    [
        nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Dropout(0.0), nn.Linear(5, 5)),
        nn.Sequential(nn.Linear(5, 5), nn.Linear(5, 5), nn.ReLU()),
        nn.Sequential(nn.ReLU(), nn.ReLU(), nn.Linear(5, 5), nn.ReLU(), nn.ReLU(), nn.Linear(5, 5)),
        nn.Sequential(nn.Linear(5, 5), nn.GELU(), nn.Linear(5, 5), nn.ReLU6()),
        nn.Sequential(Doubled(5, 5), nn.ReLU(), nn.Linear(5, 5, bias=False)),
        nn.Sequential(nn.Linear(5, 5), ACT, nn.Linear(5, 5), ACT, TIED, TIED, ACT),
        nn.Sequential(),
        Backwards(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5)),
        nn.Linear(5, 5),
        nn.Identity(),
    ],
    ids=str,
)
@pytest.mark.parametrize("as_on_a_gpu", [False, True])
def test_through_is_what_the_modules_compute(modules: nn.Module, as_on_a_gpu: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, but with the plain linear of the CPU."""
    x = torch.randn(7, 5)
    expected = modules(x)
    monkeypatch.setattr("enfa.nn.ops.linear.accelerated", lambda x: as_on_a_gpu)
    monkeypatch.setattr("enfa.nn.ops.linear.fusable", lambda *_: False)
    assert torch.equal(through(modules, x), expected)


def test_a_relu_runs_with_its_linear(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.ops.linear.accelerated", lambda x: True)
    monkeypatch.setattr("enfa.nn.ops.linear.fusable", lambda *_: False)
    monkeypatch.setattr(nn.ReLU, "forward", lambda *_: pytest.fail("a ReLU by itself"))
    modules, x = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 2), nn.ReLU()), torch.randn(7, 5)
    assert torch.equal(through(modules, x), modules[2](modules[0](x).relu()).relu())


@pytest.mark.parametrize("place", [None, 0, 1, 2])
def test_hooks_are_called(place: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.ops.linear.accelerated", lambda x: True)
    modules = nn.Sequential(nn.Linear(5, 5), nn.ReLU(), nn.Linear(5, 5))
    seen: list[Tensor] = []
    (modules if place is None else modules[place]).register_forward_hook(lambda *a: seen.append(a[2]))
    through(modules, torch.randn(7, 5))
    assert len(seen) == 1


def test_hooks_on_all_modules_are_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.ops.linear.accelerated", lambda x: True)
    modules, seen = nn.Sequential(nn.Linear(5, 5), nn.ReLU()), []
    hook = nn.modules.module.register_module_forward_hook(lambda module, *_: seen.append(type(module)))
    try:
        through(modules, torch.randn(7, 5))
    finally:
        hook.remove()
    assert seen == [nn.Linear, nn.ReLU, nn.Sequential]


def test_our_own_kernels_take_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("enfa.nn.ops.linear.accelerated", lambda x: True)  # as on a GPU, but nothing is computed here

    def takes(linear: nn.Linear, columns: int) -> bool:
        return fusable(torch.zeros(3, columns), torch.float32, columns, linear.weight, linear.bias, False)

    assert takes(nn.Linear(9, 128), 9) and takes(nn.Linear(4096, 2), 4096)
    assert not takes(nn.Linear(9, 128), 8)
    assert not takes(nn.Linear(4097, 2), 4097) and not takes(nn.Linear(2, 4097), 2)
    assert not takes(nn.Linear(9, 128).double(), 9)
    transposed = nn.Linear(128, 9)
    transposed.weight = nn.Parameter(transposed.weight.detach().T)
    assert not takes(transposed, 9)
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert takes(nn.Linear(9, 64), 9) and not takes(nn.Linear(9, 65), 9)
    finally:
        torch.set_float32_matmul_precision(before)
