"""What Adam learns."""

import pytest
import torch
from torch import nn

from enfa.training.loop.optimiser import check_learnt, make_adam
from enfa.training.settings.config import Config


@pytest.mark.parametrize("captured", [False, True])
def test_without_weights_there_is_nothing_to_learn(captured: bool) -> None:
    frozen = nn.Linear(1, 1).requires_grad_(False)
    for model in (nn.Identity(), frozen):
        with pytest.raises(ValueError, match="Expected weights to learn in ds, got none"):
            make_adam(Config("PROTEINS", model="ds"), model, captured)


def test_weights_without_gradients_are_named() -> None:
    model = nn.ModuleList(nn.Linear(1, 1) for _ in range(4))
    model[0](torch.ones(1, 1)).sum().backward()
    model[1].requires_grad_(False)
    model[3].bias.requires_grad_(False)
    with pytest.raises(ValueError, match=r"devices=3, got none for 2\.weight, 2\.bias, 3\.weight: let forward use them"):
        check_learnt(model, 3)
    with pytest.raises(ValueError, match=r"none for 0\.weight, 0\.bias, 1\.weight, 1\.bias, 2\.weight and 1 more: let"):
        check_learnt(nn.ModuleList(nn.Linear(1, 1) for _ in range(3)), 2)
    check_learnt(model[:2], 2)
