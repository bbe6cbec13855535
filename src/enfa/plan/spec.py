"""What a plan must know of a model."""

from __future__ import annotations

from dataclasses import dataclass, fields

from enfa.graphs.numbers import whole

__all__ = ["Spec"]


@dataclass(frozen=True)
class Spec:
    """What a plan must know of a model: nothing about widths, weights or feature values.

    Args:
        num_layers: number of message-passing layers L >= 1.
        context: None, or what cross-subgraph message passing sums over the bag: a layer's ``"input"`` (ESAN's
            DSS layer) or its ``"output"`` (the paper's H_j + Enc(sum_k H_k)).
        context_encoder: whether the context runs through a message-passing layer on the original graph.
        degrees: whether a conv reads the degree of a message's source, as GCN does.
        edge_attr: whether convs read edge attributes; where they do not, rows that differ in nothing else
            are the same row.
        share: ``"dataset"``: rows may be shared between graphs; ``"graph"``: only within one.
        output: what is read off table L: pools of subgraphs (``"graph"``), the rows of their roots (``"root"``), or for
            every node the sum of its rows over the bag (``"node"``).
        pruned: whether rows that no root ever reads may be left out. Not with BatchNorm, whose statistics count
            them, nor with a context.
    """

    num_layers: int
    context: str | None = None
    context_encoder: bool = False
    degrees: bool = False
    edge_attr: bool = False
    share: str = "dataset"
    output: str = "graph"
    pruned: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_layers", whole("num_layers", self.num_layers, 1))
        if self.context not in (None, "input", "output"):
            raise ValueError(f"Expected context to be None, 'input' or 'output', got {self.context!r}")
        if self.context_encoder and self.context is None:
            raise ValueError("Expected a context for context_encoder=True, got context=None")
        if self.share not in ("dataset", "graph"):
            raise ValueError(f"Expected share to be 'dataset' or 'graph', got {self.share!r}")
        if self.output not in ("graph", "root", "node"):
            raise ValueError(f"Expected output to be 'graph', 'root' or 'node', got {self.output!r}")
        if self.pruned and (self.output != "root" or self.context is not None):
            raise ValueError("Expected output='root' and no context for pruned=True: otherwise every row is read")

    def differences(self, other: Spec) -> list[str]:
        """Where two specs differ, as "name: mine here, theirs there"."""
        return [
            f"{f.name}: {getattr(self, f.name)!r} here, {getattr(other, f.name)!r} there"
            for f in fields(self)
            if getattr(self, f.name) != getattr(other, f.name)
        ]
