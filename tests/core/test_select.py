"""Selection of training rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from coview import RBF, Entropy, InputError, KMeansRows, Stratified, Uniform, as_views
from coview.core.select import _swap, as_selector
from tests.conftest import make_blobs

VIEWS = as_views(make_blobs(400, widths=(4, 100))[0])
KERNELS = dict.fromkeys(VIEWS, RBF())
SELECTOR = pytest.mark.parametrize(
    "selector", [Uniform(), Entropy(), KMeansRows(), Stratified(np.arange(400) % 3)], ids=str
)


def entropy(rows):
    """Return the quadratic Rényi entropy of the chosen rows, by its definition."""
    total = sum(RBF(VIEWS[name].shape[1])(x[rows]) for name, x in VIEWS.items())
    return -np.log(total.mean())


@SELECTOR
@pytest.mark.parametrize("count", [1, 40, 399, 400])
def test_rows_are_different_and_in_order(selector, count):
    rows = selector.rows(VIEWS, count, np.random.default_rng(0), KERNELS)
    assert rows.shape == (count,)
    assert (np.diff(rows) > 0).all()
    assert rows[0] >= 0
    assert rows[-1] < 400


@SELECTOR
def test_the_same_generator_chooses_the_same_rows(selector):
    first, again, other = (selector.rows(VIEWS, 40, np.random.default_rng(seed), KERNELS) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@SELECTOR
def test_sparse_views_give_nearly_the_same_rows_as_dense_views(selector):
    sparse = as_views({name: sp.csr_array(x) for name, x in VIEWS.items()})
    dense, other = (selector.rows(v, 40, np.random.default_rng(0), KERNELS) for v in (VIEWS, sparse))
    assert len(np.intersect1d(dense, other)) >= 36  # distances may differ by rounding


def test_entropy_is_larger_than_by_chance():
    by_chance = [entropy(Uniform().rows(VIEWS, 30, np.random.default_rng(seed), KERNELS)) for seed in range(30)]
    kernels = {name: RBF(VIEWS[name].shape[1]) for name in VIEWS}
    chosen = [entropy(Entropy().rows(VIEWS, 30, np.random.default_rng(seed), kernels)) for seed in range(5)]
    assert min(chosen) > max(by_chance)


def test_swaps_update_their_similarities():
    """Updated similarities equal recomputed ones, and their sum decreases."""
    x = np.random.default_rng(0).normal(size=(60, 3))
    gram = RBF(2.0)(x)
    chosen, some = np.arange(20), np.arange(20, 60)
    among, to_chosen = gram[:20, :20].copy(), gram[20:, :20].copy()
    before = among.sum()
    swapped = _swap(chosen, among, some, to_chosen, gram[20:, 20:])
    assert swapped > 0
    assert among.sum() < before
    assert len(set(chosen.tolist())) == 20
    np.testing.assert_allclose(among, gram[np.ix_(chosen, chosen)])
    np.testing.assert_allclose(to_chosen, gram[np.ix_(some, chosen)])


def test_entropy_stops_after_four_blocks_without_a_swap(monkeypatch):
    """If all similarities are equal, no swap helps, and four of eight blocks of candidates are used."""
    swapped = []
    monkeypatch.setattr("coview.core.select._swap", lambda *given: swapped.append(_swap(*given)) or swapped[-1])
    equal = as_views([np.ones((5000, 2))])
    rows = Entropy(draws=1000).rows(equal, 2, np.random.default_rng(0), {"view0": RBF(1.0)})
    assert len(rows) == 2
    assert swapped == [0, 0, 0, 0]


def test_k_means_rows_cover_small_clusters():
    rng = np.random.default_rng(0)
    cluster = np.repeat(np.arange(20), [981, *[1] * 19])  # nineteen samples far from all others
    x = 50.0 * rng.normal(size=(20, 5))[cluster] + rng.normal(size=(1000, 5))
    rows = KMeansRows().rows(as_views([x]), 60, rng, {})
    assert len(np.unique(cluster[rows])) > 12
    assert len(np.unique(cluster[Uniform().rows(as_views([x]), 60, rng, {})])) < 8


def test_duplicate_rows_do_not_reduce_the_number_of_chosen_rows():
    rows = KMeansRows().rows(
        as_views([np.ones((50, 2)) * (np.arange(50) % 3)[:, None]]), 10, np.random.default_rng(0), {}
    )
    assert len(np.unique(rows)) == 10


def test_groups_are_represented_in_proportion():
    groups = np.repeat(["a", "b", "c"], [200, 150, 50])
    rows = Stratified(groups).rows(VIEWS, 41, np.random.default_rng(0), KERNELS)
    assert np.unique(groups[rows], return_counts=True)[1].tolist() == [21, 15, 5]


def test_each_of_many_groups_is_represented():
    groups = np.random.default_rng(0).permutation(np.arange(4000) % 2000)
    rows = Stratified(groups).rows(as_views([np.ones((4000, 1))]), 2000, np.random.default_rng(0), {})
    np.testing.assert_array_equal(np.sort(groups[rows]), np.arange(2000))


def test_invalid_parameters_are_named():
    with pytest.raises(InputError, match=r"Stratified\(groups=…\) mixes entries .* str and None"):
        Stratified(["a", None] * 200).rows(VIEWS, 10, np.random.default_rng(0), KERNELS)
    with pytest.raises(InputError, match=r"Stratified\(groups=…\) has shape \(3,\)"):
        Stratified([1, 2, 3]).rows(VIEWS, 10, np.random.default_rng(0), KERNELS)
    for wrong in (0, True, 1.5):
        with pytest.raises(InputError, match=rf"^Entropy\.draws={wrong}: expected an integer of at least 1"):
            Entropy(draws=wrong)
    with pytest.raises(
        InputError, match="select='nearest': expected one of uniform, entropy, kmeans, or a value such as Entropy"
    ):
        as_selector("nearest")
    assert as_selector("entropy") == Entropy()
    assert as_selector(Uniform()) == Uniform()
