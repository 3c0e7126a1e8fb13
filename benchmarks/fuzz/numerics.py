"""Random problems against the reference implementations of tests/naive.py, which compute in float64 and share no code.

Eigenvalues must agree to 1e-9 of the largest, which is far above the rounding errors of either computation. Labels must
be identical, unless the reference decides one by a number that rounding errors can change: a score, or a difference of
eigenvalues, below 1e-7 of the largest.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.metrics import adjusted_rand_score

from benchmarks.fuzz.case import Case, Finding
from coview import (
    KPCA,
    KSC,
    RBF,
    Cosine,
    FixedSize,
    FuzzyGraph,
    Linear,
    MvKSC,
    NeighborGraph,
    NormalizedPolynomial,
    Polynomial,
    Precomputed,
    TMvKSCR,
)
from tests import naive
from tests.golden import is_free_of_ties

_TOLERANCE = 1e-9
_TIE = 1e-7
Array = np.ndarray


@dataclass(frozen=True)
class _Kernel:
    """A kernel, its reference for rows against training rows, and that for the training rows themselves."""

    value: Any
    new: Callable[[Array, Array], Array]
    training: Callable[[Array], Array]


def _kernel(rng: random.Random, *, definite: bool) -> _Kernel:
    """Return a random kernel; graphs are not positive definite. Views are positive, so that all degrees are."""
    sigma2, degree, offset = 2.0 ** rng.randint(0, 6), rng.randint(2, 3), rng.choice((0.0, 1.0, 2.0))
    k, scale = rng.randint(3, 8), rng.randint(2, 5)

    def cosine(x: Array, y: Array) -> Array:
        return np.array([[a @ b / np.sqrt((a @ a) * (b @ b)) for b in y] for a in x])

    def with_offset(x: Array) -> Array:
        return np.column_stack([x, np.full(len(x), offset)])

    products: list[tuple[Any, Callable[[Array, Array], Array]]] = [
        (RBF(sigma2), lambda x, y: naive.rbf(x, y, sigma2)),
        (Linear(), lambda x, y: np.array([[a @ b for b in y] for a in x])),
        (Polynomial(degree, offset), lambda x, y: np.array([[(a @ b + offset**2) ** degree for b in y] for a in x])),
        (NormalizedPolynomial(degree, offset), lambda x, y: cosine(with_offset(x), with_offset(y)) ** degree),
        (Cosine(), cosine),
    ]
    graphs = [
        _Kernel(
            NeighborGraph(k, scale),
            lambda x, y: np.array([naive.neighbour_graph_row(row, y, k, scale) for row in x]),
            lambda y: naive.neighbour_graph(y, k, scale)[0],
        ),
        _Kernel(
            FuzzyGraph(k),
            lambda x, y: np.array([naive.fuzzy_graph_row(row, y, k) for row in x]),
            lambda y: naive.fuzzy_graph(y, k)[0],
        ),
    ]
    chosen = rng.randrange(
        len(products) + 2 * len(graphs) * (not definite)
    )  # graphs are the default, and have more code
    if chosen >= len(products):
        return graphs[(chosen - len(products)) % len(graphs)]
    value, new = products[chosen]
    return _Kernel(value, new, lambda y: new(y, y))


@dataclass(frozen=True)
class _Problem:
    """Views with a kernel for each, and the parameters of the method."""

    views: dict[str, Array]
    kernels: dict[str, _Kernel]
    n_clusters: int
    rho: float
    kappa: dict[str, float]
    beta: dict[str, float]
    regularization: float

    def grams(self, rows: Any = slice(None)) -> list[Array]:
        return [self.kernels[name].training(x[rows]) for name, x in self.views.items()]

    def settings(self, *names: str) -> dict[str, Any]:
        every = {
            "kernel": {name: kernel.value for name, kernel in self.kernels.items()},
            "rho": self.rho,
            "kappa": self.kappa,
            "beta": self.beta,
            "regularization": self.regularization,
        }
        return {"assigner": "codebook", "random_state": 0} | {name: every[name] for name in names}


def _drawn(seed: int, number: int, n_views: int, *, regularized: bool = True, definite: bool = False) -> _Problem:
    rng, draws = random.Random(f"numerics {seed} {number}"), np.random.default_rng([seed, number])
    n, k = rng.randint(14, 34), rng.randint(2, 5)
    spread, truth = rng.choice((0.0, 1.0, 3.0)), np.arange(n) % k
    views = {}
    for name in "abcd"[:n_views]:
        d = rng.randint(2, 6)
        x = np.abs(draws.normal(size=(n, d)) + spread * draws.normal(size=(k, d))[truth])
        views[name] = np.where(draws.random((n, d)) < rng.choice((0.0, 0.0, 0.3)), 0.0, x) + 1e-3 * draws.random((n, d))
    return _Problem(
        views,
        {name: _kernel(rng, definite=definite) for name in views},
        k,
        rng.choice((0.0, 0.3, 0.5, 1.0, 1.0)),
        {name: rng.choice((0.5, 1.0, 2.0)) for name in views},
        {name: rng.choice((0.2, 0.5, 1.0)) for name in views},
        rng.choice((0.0, 0.0, 0.7)) if regularized else 0.0,
    )


def _tables(views: dict[str, Array], rng: random.Random) -> dict[str, Any]:
    """Return some of the views as sparse matrices."""
    return {name: sp.csr_array(x) if rng.random() < 0.3 else x for name, x in views.items()}


def _compared(model: Any, values: Array, scores: Array, labels: Array, *, by_counts: bool = False) -> str:
    """Compare eigenvalues and labels with those of the reference.

    `by_counts` leaves out labels that the reference decides by the lengths of eigenvectors, which are arbitrary.
    """
    largest = np.abs(values).max()
    error = np.abs(model.eigenvalues_ - values).max()
    if not error <= _TOLERANCE * largest:
        raise Finding(f"eigenvalues differ by {error / largest:.1e} of the largest")
    gaps = np.abs(np.diff(values)).min(initial=largest)
    k = scores.shape[1] + 1
    if gaps < _TIE * largest or (np.abs(scores) < _TIE * np.abs(scores).max(axis=0)).any():
        return "ties"
    if by_counts and not is_free_of_ties(scores, k):
        return "ties"
    if adjusted_rand_score(labels, naive.codebook(scores, k)) != 1:
        raise Finding("the labels are others")
    return "same labels"


def _shared(seed: int, number: int, rng: random.Random) -> str:
    """TMvKSCR; samples may lack views."""
    problem = _drawn(seed, number, rng.randint(1, 4))
    n, n_views = len(next(iter(problem.views.values()))), len(problem.views)
    present = np.ones((n_views, n), dtype=bool)
    if n_views > 1 and rng.random() < 0.3:
        present = np.random.default_rng([seed, number, 1]).random((n_views, n)) < 0.8
        present[:, : n // 2] = True
        present[0, ~present.any(axis=0)] = True
    views = {
        name: np.where(mask[:, None], x, np.nan) for mask, (name, x) in zip(present, problem.views.items(), strict=True)
    }
    grams = [
        problem.kernels[name].training(x[mask]) for mask, (name, x) in zip(present, problem.views.items(), strict=True)
    ]
    tables: dict[str, Any] = views if not present.all() else _tables(views, rng)
    settings = problem.settings("kernel", "rho", "kappa", "beta", "regularization")
    if present.all() and rng.random() < 0.2:  # the Gram matrices themselves
        tables, settings["kernel"] = dict(zip(views, grams, strict=True)), Precomputed()
    model = TMvKSCR(problem.n_clusters, **settings).fit(tables)
    kappa, beta = list(problem.kappa.values()), list(problem.beta.values())
    values, _, scores = naive.incomplete_tmvkscr(
        grams, present, problem.n_clusters - 1, kappa, beta, problem.rho, problem.regularization
    )
    return _compared(model, values, scores, model.labels_)


def _one_view(seed: int, number: int, rng: random.Random) -> str:
    """KSC and KPCA."""
    problem = _drawn(seed, number, 1, regularized=False)
    (gram,) = problem.grams()
    settings = {**problem.settings(), "kernel": problem.kernels["a"].value}
    data = _tables(problem.views, rng)
    if rng.random() < 0.5:
        kpca = KPCA(problem.n_clusters, **settings).fit(data)
        values, _, scores = naive.kpca(gram, problem.n_clusters - 1)
        return _compared(kpca, values, scores, kpca.labels_)
    ksc = KSC(problem.n_clusters, **settings).fit(data)
    values, _, (scores,) = naive.tmvkscr([gram], problem.n_clusters - 1, [1.0], 1.0)
    return _compared(ksc, values, scores, ksc.labels_)


def _coupled(seed: int, number: int, rng: random.Random) -> str:
    """MvKSC, whose reference solves the published pencil."""
    problem = _drawn(seed, number, rng.randint(2, 3), regularized=False, definite=True)
    gamma = [rng.choice((0.0, 1.0, 3.0)) for _ in problem.views]
    model = MvKSC(problem.n_clusters, gamma=gamma, **problem.settings("kernel", "beta")).fit(
        _tables(problem.views, rng)
    )
    values, of_views = naive.mvksc(problem.grams(), problem.n_clusters - 1, gamma)
    # Zero is a defective eigenvalue of this pencil: the reference has it with the square root of its precision.
    values = np.where(np.abs(values) < _TIE * np.abs(values).max(), 0.0, values)
    scores = sum(problem.beta[name] * each for name, each in zip(problem.views, of_views, strict=True))
    return _compared(model, values, scores, model.labels_, by_counts=True)


def _fixed(seed: int, number: int, rng: random.Random) -> str:
    """FixedSize, which trains on some rows, and labels all by clusters that are learnt from the scores of all."""
    problem = _drawn(seed, number, rng.randint(1, 3), regularized=False)
    n = len(next(iter(problem.views.values())))
    settings = problem.settings("kernel", "rho", "kappa", "beta", "regularization")
    model: Any = FixedSize(TMvKSCR(problem.n_clusters, **settings), n_train=max(10, n // 2), random_state=number)
    model.fit(problem.views)
    rows, kappa = model.train_rows_, list(problem.kappa.values())
    grams = problem.grams(rows)
    values, latent, of_views = naive.tmvkscr(grams, problem.n_clusters - 1, kappa, problem.rho)
    scores = np.zeros((n, problem.n_clusters - 1))
    others = np.setdiff1d(np.arange(n), rows)
    for (name, x), gram, training in zip(problem.views.items(), grams, of_views, strict=True):
        similarities = problem.kernels[name].new(x[others], x[rows])
        scores[rows] += problem.beta[name] * training
        scores[others] += problem.beta[name] * np.array([naive.new_row_scores(s, gram, latent) for s in similarities])
    return _compared(model, values, scores, model.labels_)


_METHODS = (_shared, _shared, _fixed, _one_view, _coupled)


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield problems of all methods in turn."""
    for i in range(10**9):
        method = _METHODS[i % len(_METHODS)]

        def run(i: int = i, method: Callable[[int, int, random.Random], str] = method) -> str:
            return method(seed, i, random.Random(f"{method.__name__} {seed} {i}"))

        yield Case(f"problem {i}: {method.__name__.strip('_')}", run)
