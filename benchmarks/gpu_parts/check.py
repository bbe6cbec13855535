"""Exactness on the device: kernels against plain PyTorch, plans against each other, and bits from run to run."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch

import enfa
from enfa.nn import Step
from enfa.plan.derived.prepare import lean, prepare
from gpu_parts.cases import Case, Dataset, loss_for, model_for, plan_for
from gpu_parts.measure import plain_operators


def _everything(model: torch.nn.Module, plan: enfa.Bag, loss: Any) -> dict[str, torch.Tensor]:
    model = copy.deepcopy(model)
    out = model(plan)
    loss(out, plan.y).backward()
    found = {"output": out.detach()}
    found |= {f"gradient {k}": p.grad for k, p in model.named_parameters() if p.grad is not None}
    return found | {f"buffer {k}": b.double() for k, b in model.named_buffers()}


def _apart(found: dict[str, torch.Tensor], reference: dict[str, torch.Tensor]) -> tuple[float, str]:
    """The largest difference, relative to the norm of all of its group."""
    scale: dict[str, float] = {}
    for name, value in reference.items():
        group = name.split(" ")[0]
        scale[group] = max(scale.get(group, 0.0), float(value.double().abs().max()))
    worst = (0.0, "")
    for name, value in reference.items():
        here = found[name].double().to(value.device)
        distance = float((here - value.double()).abs().max()) / (scale[name.split(" ")[0]] or 1.0)
        worst = max(worst, (distance if distance == distance else float("inf"), name))
    return worst


def _plans(model: torch.nn.Module, data: Dataset, graphs: np.ndarray, policy: str, device: str) -> tuple[enfa.Bag, ...]:
    """Full, distinct, and distinct as training has it, in the precision of the model."""
    full, distinct, ready = (plan_for(data, graphs, policy, model, kind) for kind in ("full", "distinct", "distinct"))
    needs = ready.program.needs
    return full.to(device), distinct.to(device), lean(prepare(ready, needs), needs).to(device)


def check(case: Case, data: Dataset, policy: str, size: int = 8, device: str = "cuda") -> dict[str, Any]:
    """Distinct and full, our kernels and plain ones, float64, float32 and bf16, graphed and eager, twice."""
    graphs, loss = data.batch(size), loss_for(data)
    model = model_for(case, data, device, torch.float64).train()
    full, _, ready = _plans(model, data, graphs, policy, device)
    with plain_operators():
        reference = _everything(model, full, loss)
    found: dict[str, Any] = {
        "float64 full, kernels": _apart(_everything(model, full, loss), reference),
        "float64 distinct, kernels": _apart(_everything(model, ready, loss), reference),
    }
    single = copy.deepcopy(model).float()
    full, distinct, ready = _plans(single, data, graphs, policy, device)
    once, again = (_everything(single, ready, loss) for _ in range(2))
    found["float32 distinct, kernels"] = _apart(once, reference)
    with plain_operators():
        found["float32 full, plain"] = _apart(_everything(single, full, loss), reference)
        found["float32 distinct, plain"] = _apart(_everything(single, distinct, loss), reference)
    found["float32 full, kernels"] = _apart(_everything(single, full, loss), reference)
    found["same bits"] = all(torch.equal(once[k], again[k]) for k in once)
    torch.set_float32_matmul_precision("high")
    found["tf32 distinct"] = _apart(_everything(single, ready, loss), reference)
    torch.set_float32_matmul_precision("highest")
    with torch.autocast(device, torch.bfloat16):
        found["bf16 distinct"] = _apart(_everything(single, ready, loss), reference)
    return found | steps_agree(case, data, policy, size, device)


def steps_agree(case: Case, data: Dataset, policy: str, size: int, device: str) -> dict[str, Any]:
    """Ten training steps, eager and graphed, each twice: the same bits."""
    loss, weights, losses = loss_for(data), [], []
    for capture in (False, True, True):
        model = model_for(case, data, device).train()
        optimiser = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True, capturable=True)
        step = Step(model, optimiser, loss, capture=capture)  # type: ignore[arg-type]
        batches = [data.batch(size), np.arange(size)]
        plans = [plan_for(data, g, policy, model, "distinct") for g in batches]
        losses.append([float(step(plans[i % 2])) for i in range(10)])
        weights.append(torch.cat([p.detach().reshape(-1) for p in model.parameters()]))
    return {
        "graphed steps equal eager ones, bit for bit": bool(torch.equal(weights[0], weights[1])),
        "graphed steps repeat, bit for bit": bool(torch.equal(weights[1], weights[2])),
        "graphed and eager apart": float((weights[0] - weights[1]).abs().max()),
        "captured": step.capture and step.num_captured,
        "losses": losses[1],
    }
