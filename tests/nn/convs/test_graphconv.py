import torch
from small_table import check_formula


def test_formula() -> None:
    """W1 x_v + W2 (sum of x_u) + b."""
    check_formula(
        "graphconv",
        lambda conv, x, _, own, incoming: (
            conv.own(x[own]) + conv.incoming(sum((x[r] for r, _ in incoming), torch.zeros(3, dtype=torch.float64)))
        ),
    )
