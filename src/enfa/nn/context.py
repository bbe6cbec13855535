"""Cross-subgraph message passing: what a row sees of the same node in the other subgraphs."""

from __future__ import annotations

from torch import Tensor, nn

from enfa.nn.convs import Conv
from enfa.nn.segment import weighted_sum
from enfa.plan.derive import bag_sizes
from enfa.plan.table import Sums

__all__ = ["CONTEXTS", "ContextBranch", "bag_sum"]

# name: (what it reads, mean over the bag, a conv on the original graph, added before the activation)
CONTEXTS = {
    "dss": ("input", True, True, True),  # ESAN: relu(bn(conv(x)) + bn'(conv'(mean_k x_k))[v])
    "identity": ("output", False, False, False),  # Eq. 6: H_j + sum_k H_k
    "mpnn": ("output", False, True, False),  # Eq. 6: H_j + Enc(sum_k H_k)
}


def bag_sum(rows: Tensor, sums: Sums, mean: bool) -> Tensor:
    """Sum or mean over the subgraphs that contain the node; 0 where none does."""
    total = weighted_sum(rows, sums)
    if not mean:
        return total
    return total / bag_sizes(sums).to(rows.dtype)[:, None]


class ContextBranch(nn.Module):
    """Encodes the contexts of one layer. ``conv`` and ``norm`` are None for the identity."""

    def __init__(self, conv: Conv | None, norm: nn.Module | None, mean: bool, before_activation: bool) -> None:
        super().__init__()
        self.conv, self.norm = conv, norm
        self.mean, self.before_activation = mean, before_activation
