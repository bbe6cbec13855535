"""The paired test of BREC's protocol: do two lists of embeddings differ by more than their spread?"""

import torch
from torch import Tensor

__all__ = ["THRESHOLD", "t_squared"]

# Of 32 pairs of vectors with 16 entries: 31 * 16 / 16 times the 95% quantile of F with 16 and 16 degrees of freedom.
THRESHOLD = 72.34


def t_squared(first: Tensor, second: Tensor, epsilon: float) -> float:
    """m (S + epsilon I)^-1 m for the mean m and the covariance S of the differences; both are [count, channels].

    Hotelling's T² is ``count`` times that. The authors' code leaves the factor out and compares with the same threshold, so
    their test, and this one, asks for differences sqrt(count) times as large. ``epsilon``, as in their code, is there because
    copies of one graph may have equal embeddings to the last bit, whose covariance has no inverse: differences below
    sqrt(epsilon * threshold) then count as none. In float64, whatever the embeddings are in.
    """
    if first.shape != second.shape or first.ndim != 2 or len(first) < 2:
        raise ValueError(f"Expected two equally long lists of vectors, got {list(first.shape)} and {list(second.shape)}")
    difference = (first - second).detach().double().cpu()
    mean = difference.mean(0)
    spread = torch.cov(difference.T).reshape(len(mean), len(mean)) + epsilon * torch.eye(len(mean), dtype=torch.float64)
    return float(mean @ torch.linalg.solve(spread, mean))
