import numpy as np
import pytest

from enfa.datasets.folds import stratified_folds


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("classes", [1, 2, 7])
@pytest.mark.parametrize("num_folds", [2, 5, 10])
def test_the_draw_is_scikit_learns(seed: int, classes: int, num_folds: int) -> None:
    selection = pytest.importorskip("sklearn.model_selection", reason="scikit-learn is not installed")
    labels = np.random.default_rng(seed).integers(classes, size=203)
    splitter = selection.StratifiedKFold(num_folds, shuffle=True, random_state=seed)
    folds = stratified_folds(labels, num_folds, seed)
    for number, (_, test) in enumerate(splitter.split(labels, labels)):
        assert np.array_equal(np.flatnonzero(folds == number), test)


def test_each_fold_holds_each_class_in_its_share() -> None:
    labels = np.repeat([4, 0, 9], [200, 100, 30])
    folds = stratified_folds(labels, 10, seed=3)
    for number in range(10):
        assert np.unique(labels[folds == number], return_counts=True)[1].tolist() == [10, 20, 3]


def test_the_seed_matters_and_repeats() -> None:
    labels = np.repeat([0, 1], 50)
    assert np.array_equal(stratified_folds(labels, 10, 0), stratified_folds(labels, 10, 0))
    assert not np.array_equal(stratified_folds(labels, 10, 0), stratified_folds(labels, 10, 1))


def test_refuses_fewer_graphs_than_folds() -> None:
    with pytest.raises(ValueError, match="at least 10 graphs for 10 folds, got 3"):
        stratified_folds(np.zeros(3), 10, 0)
    with pytest.raises(ValueError, match="at least 2 folds"):
        stratified_folds(np.zeros(3), 1, 0)
