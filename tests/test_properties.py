"""Invariants that hold for any input, tested by hypothesis."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, example, given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from coview import (
    KSC,
    RBF,
    Codebook,
    Cosine,
    Directions,
    InputError,
    Linear,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    TMvKSCR,
    as_views,
)

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

KERNELS = [RBF(), RBF(sigma2=0.3), Linear(), Polynomial(degree=3), NormalizedPolynomial(), Cosine()]
ASSIGNERS = [Codebook(), Directions(n_init=2)]


@st.composite
def random_views(draw, min_samples=6, max_samples=24):
    """Generic views: clusters of random numbers, positive so that every kernel has positive degrees."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, n_views = draw(st.integers(min_samples, max_samples)), draw(st.integers(1, 4))
    centres = rng.integers(0, 3, size=n)
    return [
        rng.uniform(0, 2, size=(3, d))[centres] + rng.uniform(0.1, 1, size=(n, d))
        for d in rng.integers(1, 5, size=n_views)
    ]


@st.composite
def awkward_views(draw):
    """Few distinct values, so that duplicates, constant columns, symmetries and exact ties are frequent."""
    n, n_views = draw(st.integers(4, 10)), draw(st.integers(1, 3))
    value = st.sampled_from([0.0, 1.0, 2.0, -1.0, 5.0])
    table = st.lists(st.lists(value, min_size=2, max_size=2), min_size=n, max_size=n)
    return [np.array(draw(table)) for _ in range(n_views)]


def fit(views, **settings):
    return TMvKSCR(**{"n_clusters": 3, "kernel": RBF(), "rho": 0.5, "random_state": 0, **settings}).fit(views)


def rows_of(views, rows):
    return [x[rows] for x in views]


@given(random_views() | awkward_views(), st.sampled_from(KERNELS), st.sampled_from(ASSIGNERS), st.data())
def test_predict_gives_a_row_the_same_label_in_any_batch(views, kernel, assigner, data):
    try:
        model = fit(views, kernel=kernel, assigner=assigner, rho=data.draw(st.sampled_from([0.0, 0.25, 1.0])))
    except InputError as error:
        assume("degree <= 0" not in str(error))
        raise
    n = len(views[0])
    whole = model.predict(views)
    cut = data.draw(st.integers(1, n - 1))
    chunks = np.concatenate([model.predict(rows_of(views, slice(cut))), model.predict(rows_of(views, slice(cut, n)))])
    single = np.concatenate([model.predict(rows_of(views, [i])) for i in range(n)])
    for other in (model.labels_, chunks, single):
        np.testing.assert_array_equal(other, whole)
    membership = model.predict_proba(views)
    np.testing.assert_array_equal(membership.argmax(axis=1), whole)
    np.testing.assert_allclose(membership.sum(axis=1), 1, rtol=1e-12)
    single = np.concatenate([model.predict_proba(rows_of(views, [i])) for i in range(n)])
    np.testing.assert_array_equal(single.argmax(axis=1), whole)
    np.testing.assert_allclose(single, membership, atol=1e-6)
    usual = model.score_samples(views)
    single = np.concatenate([model.score_samples(rows_of(views, [i])) for i in range(n)])
    assert ((usual >= 0) & (usual <= 1)).all()
    np.testing.assert_allclose(single, usual, atol=1e-5)
    for name, labels in model.predict(views, per_view=True).items():
        alone = np.concatenate([model.predict(rows_of(views, [i]), per_view=True)[name] for i in range(n)])
        np.testing.assert_array_equal(alone, labels)


@given(random_views(), st.sampled_from(ASSIGNERS))
def test_predict_gives_a_row_the_same_label_in_any_batch_of_a_precomputed_kernel(views, assigner):
    grams = [RBF()(x) for x in views]
    model = fit(grams, kernel=Precomputed(), assigner=assigner)
    single = np.concatenate([model.predict(rows_of(grams, [i])) for i in range(len(grams[0]))])
    np.testing.assert_array_equal(single, model.labels_)


@given(random_views(), st.sampled_from(KERNELS), st.sampled_from([0.0, 0.3, 1.0]), st.randoms(use_true_random=False))
def test_permuting_samples_permutes_the_result(views, kernel, rho, random):
    order = list(range(len(views[0])))
    random.shuffle(order)
    model = fit(views, kernel=kernel, rho=rho, assigner="codebook")
    permuted = fit(rows_of(views, order), kernel=kernel, rho=rho, assigner="codebook")
    np.testing.assert_allclose(permuted.eigenvalues_, model.eigenvalues_, rtol=1e-7, atol=1e-10)
    assume(eigenvalues_are_separate(model, views))  # equal eigenvalues do not determine the eigenvectors
    np.testing.assert_allclose(np.abs(permuted.scores_), np.abs(model.scores_[order]), atol=1e-6 * scale(model))
    assume(np.abs(model.scores_).min() > 1e-6 * scale(model))  # a score of zero has no sign
    assert adjusted_rand_score(permuted.labels_, model.labels_[order]) == 1
    largest = model.predict_proba(views).max(axis=1)[order]  # clusters of the same size may have other numbers
    np.testing.assert_allclose(permuted.predict_proba(rows_of(views, order)).max(axis=1), largest, atol=1e-3)


@given(random_views(), st.sampled_from([0.0, 0.3, 1.0]), st.randoms(use_true_random=False))
def test_permuting_views_changes_nothing(views, rho, random):
    named = {f"v{i}": x for i, x in enumerate(views)}
    weights = {name: 0.5 + i for i, name in enumerate(named)}
    names = list(named)
    random.shuffle(names)
    first = fit(named, rho=rho, kappa=weights, beta=weights)
    second = fit({name: named[name] for name in names}, rho=rho, kappa=weights, beta=weights)
    np.testing.assert_allclose(second.eigenvalues_, first.eigenvalues_, rtol=1e-7, atol=1e-10)
    assume(eigenvalues_are_separate(first, named))
    np.testing.assert_allclose(np.abs(second.scores_), np.abs(first.scores_), atol=1e-6 * scale(first))


@given(random_views(), st.sampled_from(KERNELS), st.sampled_from([0.0, 0.4, 1.0]), st.sampled_from(ASSIGNERS))
def test_one_view_is_ksc(views, kernel, rho, assigner):
    model = fit(views[:1], kernel=kernel, rho=rho, assigner=assigner)
    ksc = KSC(3, kernel=kernel, assigner=assigner, random_state=0).fit(views[0])
    np.testing.assert_allclose(model.eigenvalues_, ksc.eigenvalues_, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(model.scores_, ksc.scores_, atol=1e-9 * scale(ksc))
    np.testing.assert_array_equal(model.labels_, ksc.labels_)


@given(random_views(), st.sampled_from(KERNELS))
def test_sparse_views_give_the_dense_result(views, kernel):
    dense = fit(views, kernel=kernel, assigner="codebook")
    sparse = fit([sp.csr_array(x) for x in views], kernel=kernel, assigner="codebook")
    np.testing.assert_allclose(sparse.eigenvalues_, dense.eigenvalues_, rtol=1e-7, atol=1e-10)
    assume(eigenvalues_are_separate(dense, views))
    np.testing.assert_allclose(sparse.scores_, dense.scores_, atol=1e-6 * scale(dense))


@given(
    random_views(),
    st.sampled_from(KERNELS),
    st.sampled_from([0.0, 0.5, 1.0]),
    st.sampled_from(ASSIGNERS),
    st.lists(st.sampled_from([1e-150, 1e-80, 1e-12, 1.0, 1e12, 1e80, 1e150]), min_size=4, max_size=4),
)
@example([np.full((6, 2), 0.1)], RBF(), 0.5, Directions(), [1e-150] * 4)
def test_extreme_scales_give_a_result_or_a_clear_error(views, kernel, rho, assigner, scales):
    scaled = [x * factor for x, factor in zip(views, scales, strict=False)]
    try:
        model = fit(scaled, kernel=kernel, rho=rho, assigner=assigner)
    except InputError as error:
        assert isinstance(kernel, (Linear, Polynomial))  # the others are bounded and work at any scale
        assert "view" in str(error)
        return
    assert set(model.labels_) <= {0, 1, 2}
    assert np.isfinite(model.scores_).all()
    assert np.isfinite(model.explained_variance_ratio_).all()
    np.testing.assert_array_equal(model.predict(scaled), model.labels_)


@given(random_views(), st.sampled_from([1e-150, 1e-12, 1e12, 1e150]))
def test_scale_invariant_kernels_give_the_same_result_at_any_scale(views, factor):
    for kernel in (RBF(), Cosine()):
        model = fit(views, kernel=kernel)
        scaled = fit([x * factor for x in views], kernel=kernel)
        np.testing.assert_allclose(scaled.eigenvalues_, model.eigenvalues_, rtol=1e-6, atol=1e-9)
    # A linear Gram matrix and its degrees scale with the square of the factor, so their ratio is constant.
    linear = fit(views[:1], kernel=Linear())
    scaled = fit([views[0] * factor], kernel=Linear())
    np.testing.assert_allclose(scaled.eigenvalues_, linear.eigenvalues_, rtol=1e-6, atol=1e-9)


@given(awkward_views(), st.sampled_from([RBF(), NormalizedPolynomial()]), st.sampled_from(ASSIGNERS))
def test_ties_and_duplicates_give_valid_clusters(views, kernel, assigner):
    try:
        model = fit(views, kernel=kernel, assigner=assigner, n_clusters=4)
    except InputError as error:
        assert "degree <= 0" in str(error)
        return
    sizes = np.bincount(model.labels_)
    assert (np.diff(sizes) <= 0).all()
    assert sizes.min() > 0
    distinct = np.unique(np.hstack(views), axis=0, return_inverse=True)[1].ravel()
    for group in range(distinct.max() + 1):  # equal samples share a cluster
        assert len(set(model.labels_[distinct == group])) == 1


@given(awkward_views())
def test_input_validation_never_changes_the_input(views):
    before = [x.copy() for x in views]
    for x in views:
        x.flags.writeable = False
    checked = as_views(views)
    fit(views)
    for x, expected, validated in zip(views, before, checked.values(), strict=True):
        np.testing.assert_array_equal(x, expected)
        np.testing.assert_array_equal(validated, expected)


def eigenvalues_are_separate(model, views):
    """Return whether neighbouring eigenvalues, including the first omitted one, differ enough to separate vectors."""
    values = clone(model).set_params(n_clusters=model.n_clusters + 1).fit(views).eigenvalues_
    return np.abs(np.diff(values)).min() > 1e-4 * abs(values[0])


def scale(model):
    return np.abs(model.scores_).max() or 1.0
