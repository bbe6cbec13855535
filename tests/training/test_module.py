from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from enfa.batch import DataLoader
from enfa.training import read_config
from enfa.training.module import moved
from enfa.training.run import prepare


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("by_loader", [False, True])
def test_a_plan_moved_in_one_block_computes_the_same(
    config_file: Callable[..., Path], model: str, by_loader: bool
) -> None:
    run = prepare(read_config(config_file(model=model, dropout=0.5)))
    needs = run.module.model.needs
    loader = DataLoader(run.batches.compiled, 16, needs=needs if by_loader else None)
    for plan, plain in zip(loader, DataLoader(run.batches.compiled, 16), strict=True):
        losses = []
        for batch in (moved(plan, needs, torch.device("cpu")), plain):
            state = {k: v.clone() for k, v in run.module.state_dict().items()}
            torch.manual_seed(0)
            run.module.train().zero_grad()
            loss = run.module.loss(batch)
            loss.backward()
            losses.append((loss.detach(), [p.grad.clone() for p in run.module.model.parameters() if p.grad is not None]))
            run.module.load_state_dict(state)
        torch.testing.assert_close(losses[0], losses[1])
