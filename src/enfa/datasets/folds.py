"""Stratified folds, drawn as the literature draws them, so that fold 3 of seed 0 is everybody's fold 3."""

import numpy as np

__all__ = ["stratified_folds"]


def stratified_folds(labels: np.ndarray, num_folds: int, seed: int) -> np.ndarray:
    """The fold that each graph is tested in, as an int64 array ``[G]``.

    Every fold holds each class in its share of the whole. The draw is that of scikit-learn's
    ``StratifiedKFold(num_folds, shuffle=True, random_state=seed)``, number for number: GIN, ESAN and
    those who compare with them use it, and a figure on other folds is another figure.

    >>> stratified_folds(np.array([0, 0, 1, 1]), num_folds=2, seed=0)
    array([1, 0, 0, 1])
    """
    if num_folds < 2:
        raise ValueError(f"Expected at least 2 folds, got {num_folds}")
    if len(labels) < num_folds:
        raise ValueError(f"Expected at least {num_folds} graphs for {num_folds} folds, got {len(labels)}")
    # Classes are taken in the order in which they first appear, not by value.
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), dtype=np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    classes = rank[code]  # [G]
    # Deal the labels, sorted, to the folds in turn: which fold gets how many of which class.
    dealt = np.sort(classes)
    share = np.stack([np.bincount(dealt[i::num_folds], minlength=len(first)) for i in range(num_folds)])
    generator = np.random.RandomState(seed)  # the legacy generator: its stream is frozen
    fold = np.empty(len(labels), dtype=np.int64)
    for c in range(len(first)):
        places = np.repeat(np.arange(num_folds), share[:, c])
        generator.shuffle(places)
        fold[classes == c] = places
    return fold
