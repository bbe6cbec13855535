"""Where to draw the nodes of a small graph."""

import numpy as np

__all__ = ["hop_distances", "layout"]


def hop_distances(num_nodes: int, edge_index: np.ndarray) -> np.ndarray:
    """[n, n]: hops between nodes, edges taken both ways; between components two more than the longest path."""
    near = np.zeros((num_nodes, num_nodes), bool)
    near[edge_index[0], edge_index[1]] = near[edge_index[1], edge_index[0]] = True
    hops = np.where(np.eye(num_nodes, dtype=bool), 0, -1)
    reached = np.eye(num_nodes, dtype=bool)
    for hop in range(1, num_nodes):
        new = (reached.astype(np.float32) @ near.astype(np.float32) > 0) & (hops < 0)
        if not new.any():
            break
        hops[new] = hop
        reached = new
    return np.where(hops < 0, hops.max(initial=0) + 2, hops)


def layout(num_nodes: int, edge_index: np.ndarray) -> np.ndarray:
    """[n, 2] positions with edges about 1 long, the wider side across. The same graph gets the same picture.

    Stress majorisation (Gansner, Koren and North, "Graph Drawing by Stress Majorization", 2004): distances on paper
    approach hops, near ones first (weights 1 / hops^2). Starts from classical scaling. Cost: 300 * n^2.
    """
    if num_nodes < 2:
        return np.zeros((num_nodes, 2))
    hops = hop_distances(num_nodes, edge_index).astype(float)
    middle = np.eye(num_nodes) - 1.0 / num_nodes
    _, vectors = np.linalg.eigh(-0.5 * middle @ hops**2 @ middle)
    place = vectors[:, [-1, -2]] * num_nodes
    # equal places have no direction to leave each other in; the sunflower's angles are all different
    angle = np.arange(num_nodes) * np.pi * (3 - np.sqrt(5))
    place += 0.01 * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    weight = 1.0 / np.where(hops > 0, hops, np.inf) ** 2
    laplacian = np.diag(weight.sum(1)) - weight
    inverse = np.linalg.pinv(laplacian)
    for _ in range(300):
        gap = np.linalg.norm(place[:, None] - place[None], axis=2)
        ratio = weight * hops / np.where(gap > 1e-9, gap, np.inf)
        place = inverse @ (np.diag(ratio.sum(1)) - ratio) @ place
    # turn the longest direction across
    place -= place.mean(0)
    _, _, axes = np.linalg.svd(place, full_matrices=False)
    place = place @ axes.T
    return place * np.where(np.abs(place.min(0)) > place.max(0), -1, 1)  # a sign that does not depend on rounding
