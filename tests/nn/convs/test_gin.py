import torch
from small_table import check_formula


def test_formula() -> None:
    """MLP(x_v + sum of x_u)."""
    check_formula(
        "gin", lambda conv, x, _, own, incoming: conv.update(x[own] + sum((x[r] for r, _ in incoming), torch.zeros(3)))
    )
