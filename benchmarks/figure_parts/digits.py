"""How figures are rounded."""

__all__ = ["few_digits"]


def few_digits(value: float) -> str:
    """Two significant digits, as medians on a shared machine deserve: 0.14, 3.2, 48, 1,200."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else f"{rounded:g}"
