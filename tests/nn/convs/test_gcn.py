from small_table import DEGREE, check_formula


def test_formula() -> None:
    """W (x_v / d_v + sum of x_u / sqrt(d_u d_v)) + b, with d the given degree plus one."""
    d = [n + 1 for n in DEGREE]
    check_formula(
        "gcn",
        lambda conv, x, _, own, incoming: conv.update(
            x[own] / d[own] + sum(x[r] / (d[r] * d[own]) ** 0.5 for r, _ in incoming)
        ),
    )
