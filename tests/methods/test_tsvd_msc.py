import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

from coview import InputError
from coview.base import runtime
from coview.base.runtime import Workers
from coview.data.rows import l2_normalize
from coview.datasets import digits_views
from coview.methods import tsvd_msc
from coview.methods.tsvd_msc import TSVDMSC, Dictionary, self_representations, shrink_columns
from tests.conftest import make_blobs
from tests.golden import GOLDEN, golden, inputs, load, needs_golden
from tests.methods.test_tsvd_msc_tensor import slow_shrink

N_CLUSTERS = {"digits500": 10, "3sources": 6}


def unit_samples(views):
    return [l2_normalize(x) for x in views]


def slow_representations(samples, error_weight, tol=1e-7):
    """The published iterations, literally: unscaled multipliers, an inverse for every Z, all errors after it."""
    xs = [x.T for x in samples]
    n, n_views = xs[0].shape[1], len(xs)
    z, g, w = np.zeros((3, n_views, n, n))
    e, y = [np.zeros_like(x) for x in xs], [np.zeros_like(x) for x in xs]
    mu = rho = 1e-4
    objective = []
    while True:
        for v, x in enumerate(xs):
            right = (x.T @ y[v] + mu * x.T @ x - mu * x.T @ e[v] - w[v]) / rho + g[v]
            z[v] = np.linalg.inv(np.eye(n) + mu / rho * x.T @ x) @ right
            f = np.vstack([xs[u] - xs[u] @ z[u] + y[u] / mu for u in range(n_views)])
            lengths = np.linalg.norm(f, axis=0)
            shortened = f * np.maximum(1 - error_weight / mu / lengths, 0)
            e = np.split(shortened, np.cumsum([len(x) for x in xs])[:-1])
            y[v] = y[v] + mu * (x - x @ z[v] - e[v])
        g, norm = slow_shrink(z + w / rho, 1 / rho)
        w = w + rho * (z - g)
        objective.append(error_weight * np.linalg.norm(shortened, axis=0).sum() + norm)
        rows = [np.abs(x - x @ z[v] - e[v]).sum(axis=1).max() for v, x in enumerate(xs)]
        rows += [np.abs(z[v] - g[v]).sum(axis=1).max() for v in range(n_views)]
        if max(rows) < tol:
            return z, np.array(objective)
        mu, rho = 2 * mu, 2 * rho


@pytest.mark.parametrize("widths", [(4, 6, 3), (30, 5), (2,), (25, 40, 30)])
def test_iterations_match_the_reference_implementation(widths):
    views, _ = make_blobs(n_samples=25, widths=widths, spread=1.0)
    samples = unit_samples(views.values())
    expected, objective = slow_representations(samples, 0.2)
    with Workers(1) as workers:
        loop = self_representations(samples, 0.2, max_iter=200, tol=1e-7, workers=workers)
    np.testing.assert_allclose(loop.state.representation, expected, atol=1e-11)
    np.testing.assert_allclose(loop.objective, objective, atol=1e-10)
    assert loop.settled


def recorded_fit(monkeypatch, answer):
    """Return our model for the stored result, and the history that the program stores in every iteration.

    That is the sum of all slices' singular values after shrinkage (the program counts the middle one of an even number
    twice), and the violations of the two constraints.
    """
    history = []
    iterate = tsvd_msc.admm_iteration

    def record(dictionaries, error_weight, now, workers):
        now, objective = iterate(dictionaries, error_weight, now, workers)
        total_error = np.sqrt(sum(np.square(e).sum(axis=0) for e in now.error)).sum()
        n = now.low_rank.shape[1]
        total = n * (objective - error_weight * total_error)
        if n % 2 == 0:
            middle = now.low_rank[:, ::2].sum(axis=1) - now.low_rank[:, 1::2].sum(axis=1)
            total += np.linalg.svd(middle, compute_uv=False).sum()
        history.append((total, *now.violations))
        return now, objective

    monkeypatch.setattr(tsvd_msc, "admm_iteration", record)
    k = N_CLUSTERS.get(str(answer["dataset"]), 2)
    model = TSVDMSC(k, error_weight=float(answer["lam"]), shuffle=False, random_state=0, n_jobs=1)
    model.fit(inputs(answer))
    monkeypatch.undo()
    return model, np.array(history)


def assert_agrees(model, history, answer):
    assert model.n_iter_ == int(answer["iters"]) == len(history)
    largest = np.abs(answer["S_first50"]).max()
    np.testing.assert_allclose(model.affinity_[:50, :50], answer["S_first50"], atol=1e-10 * largest)
    np.testing.assert_allclose(model.affinity_.sum(axis=1), answer["S_rowsum"], rtol=1e-10)
    if answer["S"].size:
        np.testing.assert_allclose(model.affinity_, answer["S"], atol=1e-10 * answer["S"].max())
    # The final violations of the constraints are rounding errors of sums of up to 1000 numbers.
    np.testing.assert_allclose(history, answer["history"], rtol=1e-9, atol=1e-11)


@needs_golden
@pytest.mark.parametrize("stem", [stem for stem in golden("tsvdmsc_*") if "3sources" not in stem])
def test_agrees_with_the_authors_program(stem, monkeypatch):
    answer = load(stem)
    model, history = recorded_fit(monkeypatch, answer)
    assert_agrees(model, history, answer)
    assert adjusted_rand_score(answer["labels"], model.labels_) == 1


@needs_golden
def test_the_authors_program_shrinks_the_middle_slices_of_odd_numbers_of_samples_twice(monkeypatch):
    answer = load("tsvdmsc_3sources_lam0.2")
    clean, _ = recorded_fit(monkeypatch, answer)
    deviation = np.abs(clean.affinity_ - answer["S"]).max() / answer["S"].max()
    assert 0.005 < deviation < 0.02

    def defective(tensor, threshold, out, workers):
        n = tensor.shape[1]
        out[...], norm = slow_shrink(tensor, threshold, twice=(n // 2, n - n // 2))
        return norm

    monkeypatch.setattr(tsvd_msc, "shrink", defective)
    model, history = recorded_fit(monkeypatch, answer)
    assert_agrees(model, history, answer)
    assert adjusted_rand_score(answer["labels"], model.labels_) == 1


@needs_golden
def test_the_authors_scores_are_reached_on_shuffled_digits():
    data = dict(np.load(GOLDEN / "inputs" / "digits500_shuf.npz"))
    model = TSVDMSC(10, shuffle=False, random_state=0).fit([data[f"X{v}"] for v in range(6)])
    assert model.n_iter_ == 26
    assert adjusted_rand_score(data["y"], model.labels_) == pytest.approx(0.8877, abs=1e-4)


def test_the_order_of_samples_does_not_reveal_their_classes():
    """Sorted classes are a low frequency of the transform along the samples; a random order prevents that."""
    views, truth = digits_views()
    by_class = np.concatenate([np.flatnonzero(truth == digit)[:20] for digit in range(10)])
    scores = {}
    for name, rows in {"sorted": by_class, "mixed": np.random.default_rng(0).permutation(by_class)}.items():
        for shuffle in (True, False):
            model = TSVDMSC(10, shuffle=shuffle, random_state=0).fit(views.take(rows))
            scores[name, shuffle] = adjusted_rand_score(truth[rows], model.labels_)
    assert scores["sorted", False] == 1  # the leak
    honest = [scores["sorted", True], scores["mixed", True], scores["mixed", False]]
    assert 0.75 < min(honest) <= max(honest) < 0.9


def test_the_shuffle_is_undone():
    views, truth = make_blobs(n_samples=40)
    model = TSVDMSC(3, random_state=0).fit(views)
    inside = truth[:, None] == truth
    assert model.affinity_[inside].mean() > 2 * model.affinity_[~inside].mean()
    assert adjusted_rand_score(truth, model.labels_) == 1


def test_the_affinity_is_symmetric_and_not_negative():
    views, _ = make_blobs(n_samples=30)
    model = TSVDMSC(3, random_state=0).fit(views)
    np.testing.assert_array_equal(model.affinity_, model.affinity_.T)
    assert (model.affinity_ >= 0).all()
    assert model.objective_.shape == (model.n_iter_,)


def test_sparse_views_and_threads_change_nothing():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 14)
    topics = rng.random((3, 300)) < 0.1
    counts = rng.poisson(0.03 + 0.8 * topics[truth]).astype(float)
    narrow = rng.poisson(0.2 + 2.0 * (rng.random((3, 20)) < 0.3)[truth]).astype(float)
    dense = TSVDMSC(3, random_state=0, n_jobs=1).fit([counts, narrow])
    sparse = TSVDMSC(3, random_state=0, n_jobs=2).fit([sp.csr_array(counts), sp.csr_array(narrow)])
    np.testing.assert_allclose(sparse.affinity_, dense.affinity_, atol=1e-11)
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    assert adjusted_rand_score(truth, dense.labels_) == 1
    several = TSVDMSC(3, random_state=0, n_jobs=3).fit([counts, narrow])
    np.testing.assert_array_equal(several.affinity_, dense.affinity_)


def test_violations_are_measured_in_the_features_of_wide_views():
    rng = np.random.default_rng(0)
    samples = rng.normal(size=(12, 700))
    for x in (samples, sp.csr_array(samples)):
        dictionary = Dictionary(x)
        coefficients = rng.normal(size=(12, 12))
        rest = dictionary.columns @ coefficients
        expected = np.abs(samples.T @ coefficients).sum(axis=1).max()
        assert dictionary.largest_row(rest) == pytest.approx(expected, rel=1e-11)


def test_column_norms_are_reduced_over_all_views():
    blocks = [np.array([[3.0, 0.0, 0.0]]), np.array([[4.0, 1.0, 0.0]])]
    shortened, total = shrink_columns(blocks, 2.0)
    np.testing.assert_allclose(shortened[0], [[1.8, 0, 0]])
    np.testing.assert_allclose(shortened[1], [[2.4, 0, 0]])
    assert total == pytest.approx(3)


def test_zero_samples_and_zero_views_are_accepted():
    views, truth = make_blobs(n_samples=60)
    views = {name: x.copy() for name, x in views.items()}
    for x in views.values():
        x[:4] = 0
    views["zero"] = np.zeros((60, 3))
    views["wide and zero"] = np.zeros((60, 100))
    model = TSVDMSC(3, random_state=0).fit(views)
    assert adjusted_rand_score(truth[4:], model.labels_[4:]) == 1
    assert not model.affinity_[:4, :4].any()
    with pytest.warns(ConvergenceWarning, match="found 1 distinct clusters"):
        assert not TSVDMSC(2).fit(np.zeros((5, 2))).labels_.any()


def test_too_few_iterations_give_a_warning():
    views, _ = make_blobs(n_samples=30)
    with pytest.warns(ConvergenceWarning, match="TSVDMSC has not converged after max_iter=20 iterations"):
        model = TSVDMSC(3, max_iter=20, random_state=0).fit(views)
    assert model.n_iter_ == 20


def test_the_penalty_stops_growing():
    views, _ = make_blobs(n_samples=12)
    with pytest.warns(ConvergenceWarning, match="has not converged"):
        model = TSVDMSC(3, max_iter=120, tol=0.0, random_state=0).fit(views)
    converged = TSVDMSC(3, random_state=0).fit(views)
    np.testing.assert_allclose(model.affinity_, converged.affinity_, atol=1e-6)


@pytest.mark.parametrize("error_weight", [0, -1.0, np.inf, np.nan, True, "small", None])
def test_an_invalid_error_weight_is_refused(error_weight):
    with pytest.raises(InputError, match=r"error_weight=.*: expected a number above 0"):
        TSVDMSC(2, error_weight=error_weight).fit(np.eye(5))


def test_a_fit_that_exceeds_the_memory_is_refused(monkeypatch):
    monkeypatch.setattr(runtime, "available_memory", lambda: 10**5)
    with pytest.raises(MemoryError, match="representing 100 samples by one another in 1 views needs about"):
        TSVDMSC(2).fit(np.random.default_rng(0).normal(size=(100, 2)))
