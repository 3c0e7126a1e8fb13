"""The coupled eigenproblem: both solvers agree, and degenerate cases are solved."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from coview import RBF, InputError, Linear
from coview.base.runtime import Workers
from coview.core.tiles import SymmetricTiles
from coview.methods import mvksc_eigen as coupled
from coview.methods.mvksc_eigen import coupled_eigenpairs
from tests.naive import centring_matrix

N = 300


def tiles_of(matrix):
    tiles = SymmetricTiles(len(matrix), np.float64, Workers(1))
    for tile, (rows, columns) in zip(tiles.tiles, tiles.places, strict=True):
        tile[...] = matrix[rows, columns]
    return tiles


def normalised(gram):
    root = np.sqrt(gram.sum(axis=1))
    centring = centring_matrix(gram)
    return centring @ gram @ centring.T / root[:, None] / root


def problems():
    rng = np.random.default_rng(0)
    views = [rng.normal(size=(N, 2)) for _ in range(3)]
    cluster = rng.integers(5, size=N)
    return {
        "smooth kernels": [RBF(1.0)(x) for x in views],
        "two views": [RBF(1.0)(x) for x in views[:2]],
        "low rank": [Linear()(np.abs(x)) for x in views],
        "the same view three times": [RBF(1.0)(views[0])] * 3,
        "equal eigenvalues": [RBF(1.0)(100.0 * np.eye(5)[cluster])] * 3,
        "duplicates": [RBF(1.0)(views[0][:50].repeat(6, axis=0)), RBF(1.0)(views[1])],
    }


def check(matrices, shrink, pairs):
    """The equation itself, in every view."""
    others = pairs.images.sum(axis=0) - pairs.images
    right = pairs.values * (pairs.vectors - shrink[:, None, None] * pairs.images)
    used = pairs.values > 0
    np.testing.assert_allclose(others[..., used], right[..., used], atol=1e-8 * np.abs(others).max())
    for matrix, x, image in zip(matrices, pairs.vectors, pairs.images, strict=True):
        np.testing.assert_allclose(matrix @ x, image, atol=1e-12)


@pytest.mark.parametrize("name", problems())
@pytest.mark.parametrize("gamma", [0.0, 1.0, 0.9 * N])
def test_large_and_small_solver_agree(name, gamma, monkeypatch):
    dense = [normalised(gram) for gram in problems()[name]]
    matrices, shrink = [tiles_of(matrix) for matrix in dense], np.full(len(dense), gamma / N)
    pairs = coupled_eigenpairs(matrices, shrink, 4)
    check(dense, shrink, pairs)
    monkeypatch.setattr(coupled, "_DENSE_ROWS", 10 * N)
    small = coupled_eigenpairs(matrices, shrink, 4)
    check(dense, shrink, small)
    np.testing.assert_allclose(pairs.values, small.values, rtol=1e-8)


def test_pairs_without_agreement_are_zero():
    """Three views of rank 2: six pairs in total, three of them positive."""
    dense = [normalised(gram) for gram in problems()["low rank"]]
    pairs = coupled_eigenpairs([tiles_of(matrix) for matrix in dense], np.full(3, 1 / N), 9)
    assert (pairs.values[:3] > 0).all()
    assert (pairs.values[3:6] < 0).all()
    assert not pairs.values[6:].any()
    assert not pairs.vectors[..., 3:].any()
    assert not pairs.images[..., 3:].any()


@pytest.mark.parametrize("rows", [0, 10 * N])
def test_too_large_a_weight_is_refused(rows, monkeypatch):
    monkeypatch.setattr(coupled, "_DENSE_ROWS", rows)
    matrices = [tiles_of(normalised(gram)) for gram in problems()["smooth kernels"]]
    with pytest.raises(InputError, match="gamma is too large"):
        coupled_eigenpairs(matrices, np.full(3, 2.0), 3)


@pytest.mark.parametrize(("rows", "outcome"), [(0, "kept the approximation"), (10 * N, "used the dense solver")])
def test_nearly_equal_eigenvalues_give_a_warning(rows, outcome, monkeypatch):
    monkeypatch.setattr(coupled, "_DENSE_FALLBACK_ROWS", rows)
    rng = np.random.default_rng(0)
    dense = [normalised(RBF(1e-4)(rng.normal(size=(N, 2)))) for _ in range(3)]
    shrink = np.full(3, 1 / N)
    pairs = coupled_eigenpairs([tiles_of(matrix) for matrix in dense], shrink, 3)
    (note,) = pairs.notes
    assert note.category is ConvergenceWarning
    assert outcome in note.message
    np.testing.assert_allclose(pairs.values, 2 / (1 - 1 / N), rtol=1e-4)


def test_zero_matrices_give_zeros():
    pairs = coupled_eigenpairs([tiles_of(np.zeros((N, N)))] * 3, np.full(3, 1 / N), 2)
    assert not pairs.values.any()
    assert not pairs.vectors.any()
