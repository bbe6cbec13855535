"""What Adam learns."""

import pytest
from torch import nn

from enfa.training.loop.optimiser import make_adam
from enfa.training.settings.config import Config


@pytest.mark.parametrize("captured", [False, True])
def test_without_weights_there_is_nothing_to_learn(captured: bool) -> None:
    frozen = nn.Linear(1, 1).requires_grad_(False)
    for model in (nn.Identity(), frozen):
        with pytest.raises(ValueError, match="Expected weights to learn in ds, got none"):
            make_adam(Config("PROTEINS", model="ds"), model, captured)
