import torch
from small_table import check_formula


def test_formula() -> None:
    """MLP(x_v + sum of relu(x_u + W e_uv))."""
    check_formula(
        "gine",
        lambda conv, x, edge, own, incoming: conv.mlp(
            x[own] + sum((torch.relu(x[r] + conv.edge(edge[e])) for r, e in incoming), torch.zeros(3))
        ),
    )
