"""What a plan costs to run."""

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """Rows that convs compute and messages that they read, for layers 1…L, and bytes of the plan's arrays."""

    rows: list[int]
    edges: list[int]
    bytes: int
