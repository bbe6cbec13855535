from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from enfa.batch import DataLoader
from enfa.training import fit, read_config
from enfa.training.loop.module import moved
from enfa.training.start.prepare import prepare


def test_a_loss_that_is_no_number_is_told_once(config_file: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    fit(read_config(config_file("diverges", lr=1e200, norm="layer", epochs=3)), progress=False)
    said = capsys.readouterr().err
    assert said.count("diverges: the loss is nan in epoch") == 1, said


@pytest.mark.parametrize("model", ["ds", "dss"])
@pytest.mark.parametrize("by_loader", [False, True])
def test_a_plan_moved_in_one_block_computes_the_same(config_file: Callable[..., Path], model: str, by_loader: bool) -> None:
    run = prepare(read_config(config_file(model=model, dropout=0.5)))
    needs = run.batches.compiled.program.needs
    loader = DataLoader(run.batches.compiled, 16, needs=needs if by_loader else None)
    for plan, plain in zip(loader, DataLoader(run.batches.compiled, 16), strict=True):
        losses = []
        for batch in (moved(plan, torch.device("cpu")), plain):
            state = {k: v.clone() for k, v in run.module.state_dict().items()}
            torch.manual_seed(0)
            run.module.train().zero_grad()
            loss = run.module.loss(batch)
            loss.backward()
            losses.append((loss.detach(), [p.grad.clone() for p in run.module.model.parameters() if p.grad is not None]))
            run.module.load_state_dict(state)
        torch.testing.assert_close(losses[0], losses[1])


def test_ranks_drop_the_same_rows(config_file: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever number of graphs each has: the head draws for every one of them."""
    run = prepare(read_config(config_file(dropout=0.5)))
    module, compiled, drawn = run.module.train(), run.batches.compiled, []
    module._trainer = SimpleNamespace(world_size=2, current_epoch=3)  # type: ignore[assignment]
    right = torch.randint
    monkeypatch.setattr(torch, "randint", lambda *args, **more: drawn.append(right(*args, **more)) or drawn[-1])
    for graphs in ([0, 1, 2, 3, 4], [5, 6, 7]):
        for batch in range(3):
            module.training_step(compiled[graphs], batch)
    one, two = torch.stack(drawn).reshape(2, 3, 2)  # ranks, batches, layers
    assert torch.equal(one, two) and len(one.unique()) == 6
