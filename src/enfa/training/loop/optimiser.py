"""Adam, for steps that are captured and for others, and its state in checkpoints, which fits both."""

from typing import Any

import torch
from torch import nn

from enfa.training.settings.config import Config

__all__ = ["as_numbers", "check_learnt", "make_adam"]


def make_adam(config: Config, model: nn.Module, captured: bool) -> torch.optim.Adam:
    learnt = [p for p in model.parameters() if p.requires_grad]
    if not learnt:
        raise ValueError(f"Expected weights to learn in {config.model}, got none")
    if not captured:
        return torch.optim.Adam(learnt, lr=config.lr, weight_decay=config.weight_decay)
    # a rate that a captured step is to follow has to be a tensor from the start: schedulers then change it in place
    lr = torch.tensor(config.lr, device=learnt[0].device)
    return torch.optim.Adam(learnt, lr=lr, weight_decay=config.weight_decay, fused=True, capturable=True)


def check_learnt(model: nn.Module, devices: int) -> None:
    """Refuse a parameter that a step has no gradient of: processes that add up theirs wait for all of them."""
    unused = [name for name, p in model.named_parameters() if p.requires_grad and p.grad is None]
    if unused:
        names = ", ".join(unused[:5]) + (f" and {len(unused) - 5} more" if len(unused) > 5 else "")
        raise ValueError(
            f"Expected every parameter to have a gradient with devices={devices}, got none for {names}: let forward use "
            f"them, leave them out of the model, freeze them (requires_grad_(False)), or train with devices=1"
        )


def as_numbers(checkpoint: dict[str, Any]) -> None:
    """Rates as numbers, whatever they were here: a run may be resumed in another way."""
    for state in checkpoint.get("optimizer_states", ()):
        for group in state["param_groups"]:
            group |= {name: float(group[name]) for name in ("lr", "initial_lr") if name in group}
            group |= {"capturable": False, "fused": None}
    for state in checkpoint.get("lr_schedulers", ()):
        for name in {"base_lrs", "_last_lr"} & state.keys():
            state[name] = [float(lr) for lr in state[name]]
