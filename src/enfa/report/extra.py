"""What draws needs matplotlib, which the package does without."""

from importlib.util import find_spec

__all__ = ["need_matplotlib"]


def need_matplotlib() -> None:
    """Before any work that ends in a picture."""
    if find_spec("matplotlib") is None:
        raise ValueError("Expected matplotlib, which draws pictures and reports, got none: pip install 'enfa[report]'")
