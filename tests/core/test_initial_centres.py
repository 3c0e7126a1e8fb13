import numpy as np
import pytest
from sklearn.cluster import kmeans_plusplus

from coview.core.assign import initial_rows


@pytest.mark.parametrize(("n_clusters", "width"), [(1, 2), (2, 1), (3, 2), (10, 9)])
def test_initial_rows_are_those_that_scikit_learn_draws_one_start_after_the_other(n_clusters, width):
    x = np.random.default_rng(0).standard_normal((300, width))
    drawn = np.random.RandomState(5)
    expected = [kmeans_plusplus(x, n_clusters, random_state=drawn)[1] for _ in range(4)]
    assert initial_rows(x, n_clusters, n_init=4, seed=5).tolist() == np.array(expected).tolist()


def test_rows_that_repeat_give_valid_initial_rows():
    x = np.repeat([[0.0, 1.0], [1.0, 0.0]], 20, axis=0)
    rows = initial_rows(x, 3, n_init=5, seed=0)
    assert rows.shape == (5, 3)
    assert ((rows >= 0) & (rows < len(x))).all()
    assert all(len(np.unique(x[each], axis=0)) == 2 for each in rows)
