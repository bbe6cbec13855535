"""What policies have in common that choose subgraphs from another one's bags."""

from __future__ import annotations

from copy import copy

from enfa.edits.policy import Policy

__all__ = ["Chosen"]


class Chosen(Policy):
    """A policy whose marks are those of :attr:`policy`, from whose bags it takes some subgraphs."""

    policy: Policy

    @property
    def marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return self.policy.marks

    @property
    def edge_marks(self) -> tuple[tuple[float, ...], ...]:  # type: ignore[override]
        return self.policy.edge_marks

    def for_any_graph(self) -> Policy:
        other = copy(self)
        other.policy = self.policy.for_any_graph()
        return other
