"""Estimators on generated tables: all methods and wrappers, with ordinary and odd parameters.

A fit must give a right answer or an InputError of one line. An answer is right if labels, memberships and scores have
their shapes and ranges, `predict` gives the training samples the same labels, a sample has the same label alone and
among others, the same seed gives the same labels on any number of threads, a saved model is the same after `load`, and
the input has not changed. Clear clusters that are found at scale 1 must be found at any other scale.
"""

from __future__ import annotations

import inspect
import random
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from threadpoolctl import threadpool_limits

from benchmarks.fuzz.case import Case, Finding, answer_or_documented_error
from benchmarks.fuzz.tables import Problem, contents, drawn_problem
from coview import (
    METHODS,
    MVSCBP,
    RBF,
    Codebook,
    Concat,
    Cosine,
    Coview,
    Directions,
    Entropy,
    FixedSize,
    FuzzyGraph,
    InputError,
    Linear,
    NeighborGraph,
    NormalizedPolynomial,
    PerView,
    Polynomial,
    Precomputed,
    Preprocessed,
    load,
    save,
)

# Words of all warnings that are documented.
_DOCUMENTED = re.compile(
    r"has not converged after max_iter=|^found \d+ (distinct )?clusters|clusters are requested for|eigenvalues are "
    r"nearly equal|^view '|^the views '"
)
# Numbers, types and containers that no parameter expects, or only some.
_ODD: tuple[Any, ...] = (
    None, True, -1, 0, 1, 2, 0.5, 2.5, np.nan, np.inf, -np.inf, 1e300, 1e-300, 10**30, "", "x", "auto", [], {}, (),
    [1.0], [1.0, 2.0], {"a": 1.0}, np.int8(2), np.uint8(3), np.int64(3), np.float32(0.5), np.float64(0.5), np.array(2),
    np.array([1.0, 2.0]), np.bool_(True), RBF(), "precomputed", b"2", 2 + 0j,
)  # fmt: skip
_WEIGHTS = (None, 1.0, 0.0, [1.0, 2.0], {"a": 3.0}, {"a": 0.0, "b": 2.0}, [1e300, 1.0], [1e-300, 1.0], -1.0)
_VALUES: dict[str, tuple[Any, ...]] = {
    "n_clusters": (2, 3, 4, 5, 1, 12, np.int8(2), np.uint8(3), 1000),
    "kernel": ("auto", "rbf", "linear", "cosine", "graph", "fuzzy", "precomputed", RBF(2.0), RBF(1e-300), RBF(1e300),
               Linear(), Polynomial(), Polynomial(3, 0.0), NormalizedPolynomial(), Cosine(), Precomputed(),
               FuzzyGraph(3), FuzzyGraph(200), NeighborGraph(2, 1), NeighborGraph(metric="cosine"),
               FuzzyGraph(metric="seuclidean"), ["rbf", "graph"], {"a": "rbf", "b": "linear"}, "gauss"),
    "rho": (0.0, 0.5, 1.0, np.float64(0.5), np.float32(0.25), 1e-300),
    **dict.fromkeys(("kappa", "beta", "gamma", "coupling"), _WEIGHTS),
    "regularization": ("auto", 0, 1, 0.5, 1e300),
    "assigner": ("directions", "codebook", Codebook(), Directions(2)),
    "dtype": ("auto", "float32", "float64", np.float32, np.float64, "float16", int),
    "batch_size": ("auto", 1, 7, 10**9),
    "n_jobs": (None, 1, 2, 4, -1, 10**6),
    "scheme": ("pairwise", "centroid"),
    "embedding": (None, 0, 1, "a"),
    "error_weight": (0.01, 0.2, 5.0),
    **dict.fromkeys(("shuffle", "learn_weights", "center"), (True, False)),
    "n_neighbors": (1, 2, 5, 10, 500),
    "threshold": (0.1, 1.0, 3.0),
    "pair_rate": (0.1, 0.9, 1.0),
    "consistency": (0.1, 1.0, 10.0),
    "distance_test": ("paper", "program"),
    "normalize": (None, "feature", "sample"),
    "init": ("k-means++", "random"),
    "n_init": (1, 2, 10),
    "anchors": (0.5, 0.1, 1.0, [0, 1, 2], 5),
    "n_anchors": ("auto", 2, 5, 12, 500),
    "weight_exponent": (1.5, 5.0, 1.0),
    "weighting": ("laplacian", "none", None),
    "max_iter": (1, 2, 30),
    "tol": (0.0, 1e-6, 1.0, np.inf),
    "random_state": (0, 1, np.int64(3), 2**32 + 5),
    "n_train": ("auto", 0.5, 0.9, 1.0, 5, 12, 10**6),
    "select": ("uniform", "entropy", "kmeans", Entropy(3)),
    "n_repeats": (1, 2, 3),
    "steps": ("standard", "l2", "tfidf", "log1p", "total", "block", "median", "nearest", "pca", "auto", None,
              ["median", "standard"], {"a": "l2"}, ["log1p", "pca"]),
    "weights": (None, [1.0], [0.5, 2.0]),
    "views": (None, [2, 3], {"a": [0, 1], "b": [2]}, {"a": slice(0, 2)}),
}  # fmt: skip
_OTHER_RULE = {MVSCBP}  # which labels new samples by a vote of their nearest anchors, as its authors do
_MAY_TAKE_LONG = {"max_iter", "n_init", "n_repeats"}  # if they are large
_NOT_DRAWN = {"estimator", "estimators", "progress", "verbose"}
_KINDS = (*METHODS, "fixed", "preprocessed", "concat", "perview", "coview")
_RATES = [{"sfmc": 3, "comic": 1, "tsvdmsc": 5}.get(kind, 12) for kind in _KINDS]


def _parameters(rng: random.Random, kind: Any, rate: float) -> dict[str, Any]:
    """Return random parameters of a class; most have values that they may have."""
    names = [name for name in _defaults(kind) if name not in _NOT_DRAWN]
    drawn: dict[str, Any] = {"n_clusters": rng.choice((2, 2, 3, 3, 4))} if "n_clusters" in names else {}
    if "random_state" in names:
        drawn["random_state"] = rng.randrange(5)
    while rng.random() < rate:
        name = rng.choice(names)
        values: Sequence[Any] = _VALUES.get(name, ())
        if rng.random() < 0.15 or not values:
            values = [value for value in _ODD if not (name in _MAY_TAKE_LONG and isinstance(value, int))]
        drawn[name] = rng.choice(values)
    return drawn


def _drawn_model(rng: random.Random, kind: str) -> Any:
    rate = rng.choice((0.0, 0.4, 0.7))

    def method(*names: str) -> Any:
        each = METHODS[rng.choice(names)]
        return each(**_parameters(rng, each, rate / 2))

    if kind in METHODS:
        return METHODS[kind](**_parameters(rng, METHODS[kind], rate))
    if kind == "fixed":
        settings = {"n_train": rng.choice((0.5, 0.8, 12)), **_parameters(rng, FixedSize, rate)}
        return FixedSize(method("tmvkscr", "tmvkscr", "mvksc", "opmc", "mvscbp", "ksc", "sfmc"), **settings)
    if kind == "preprocessed":
        return Preprocessed(method("tmvkscr", "mvksc", "opmc", "oplfmvc"), **_parameters(rng, Preprocessed, rate))
    if kind == "coview":
        parameters = _parameters(rng, Coview, rate)
        if rng.random() < 0.7:
            parameters["n_clusters"] = rng.choice(("auto", "auto", 1, 12, [2, 3], range(2, 5)))
        return Coview(**parameters)
    wrapper = {"concat": Concat, "perview": PerView}[kind]
    return wrapper(method("ksc", "kpca", "opmc", "tmvkscr"), **_parameters(rng, wrapper, rate / 3))


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: each.default for name, each in inspect.signature(kind).parameters.items()}


def _words(model: Any) -> str:
    """Return the model with the parameters that are not the default."""
    if isinstance(model, list):
        return f"[{', '.join(map(_words, model))}]"
    if not hasattr(model, "get_params"):
        return repr(model)
    defaults = _defaults(type(model))
    given = {name: _words(getattr(model, name)) for name in defaults}
    changed = (f"{name}={words}" for name, words in given.items() if words != repr(defaults[name]))
    return f"{type(model).__name__}({', '.join(changed)})"


def _is_seeded(model: Any) -> bool:
    seeds = [value for name, value in model.get_params().items() if name.endswith("random_state")]
    return all(isinstance(seed, (int, np.integer)) for seed in seeds)


def _is_default(model: Any, n_clusters: int) -> bool:
    """Return whether only parameters that do not hide clear clusters were drawn."""
    free = {"n_clusters": n_clusters, **dict.fromkeys(("random_state", "views", "n_jobs"), ...)}
    return all(
        free.get(name, default) is ... or repr(getattr(model, name)) == repr(free.get(name, default))
        for name, default in _defaults(type(model)).items()
    )


@contextmanager
def _documented_warnings() -> Iterator[None]:
    """Raise a Finding for any other warning."""
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        yield
    for each in given:
        if not (each.category in (ConvergenceWarning, UserWarning) and _DOCUMENTED.search(str(each.message))):
            place = f"{Path(each.filename).name}:{each.lineno}"
            raise Finding(f"{each.category.__name__} at {place}: {each.message}")


def _require(condition: Any, finding: str) -> None:
    if not condition:
        raise Finding(finding)


def _check_labels(labels: np.ndarray, n: int, n_clusters: int) -> None:
    _require(labels.shape == (n,) and labels.dtype == np.int64, f"labels of {labels.shape} and {labels.dtype}")
    _require(labels.min() >= 0 and labels.max() < n_clusters, f"labels from {labels.min()} to {labels.max()}")


def _check_outputs(model: Any, data: Any, n: int) -> None:
    """Check memberships, scores and novelty of n samples."""
    if hasattr(model, "predict_proba"):
        membership = model.predict_proba(data)
        _require(len(membership) == n and (membership >= 0).all(), "memberships below 0")
        _require(np.allclose(membership.sum(axis=1), 1, atol=1e-6), "memberships do not sum to 1")
    if hasattr(model, "transform"):
        scores = np.asarray(model.transform(data))
        _require(len(scores) == n and np.isfinite(scores).all(), "scores that are not finite")
    if hasattr(model, "score_samples"):
        usual = model.score_samples(data)
        _require(usual.shape == (n,) and (usual >= 0).all() and (usual <= 1).all(), "score_samples outside [0, 1]")


def _check_rows(model: Any, problem: Problem, rng: random.Random, labels: np.ndarray, n_clusters: int) -> None:
    """Check training samples alone, and new samples together and alone."""
    for i in rng.sample(range(problem.n), min(problem.n, 3)):
        _require(model.predict(problem.rows([i])) == labels[i], f"row {i} has another label alone")
    rows = problem.new(5)
    with suppress(InputError):  # new samples may have values that the kernel cannot compare
        found = model.predict(rows(slice(None)))
        _check_labels(found, 5, n_clusters)
        _require(model.predict(rows([3])) == found[3], "a new row has another label alone")
        _check_outputs(model, rows(slice(None)), 5)


def _check_saved(model: Any, data: Any, path: Path) -> None:
    try:
        save(model, path)
    except InputError as error:
        raise Finding(f"a fitted model cannot be saved: {error}") from None
    loaded: Any = load(path)
    _require(np.array_equal(loaded.labels_, model.labels_), "other labels_ after load")
    _require(np.array_equal(loaded.predict(data), model.predict(data)), "other labels after load")
    if hasattr(model, "transform"):
        before, after = (np.asarray(each.transform(data)) for each in (model, loaded))
        _require(np.array_equal(before, after), "other scores after load")


def _check_again(model: Any, data: Any, n_threads: int) -> None:
    """Fit again with so many threads; methods without such a parameter have a limit from outside."""
    parameters = [name for name in model.get_params() if name == "n_jobs" or name.endswith("__n_jobs")]
    other = clone(model).set_params(**dict.fromkeys(parameters, n_threads))
    with threadpool_limits(n_threads):
        _require(np.array_equal(other.fit(data).labels_, model.labels_), f"other labels on {n_threads} threads")


def _check(model: Any, problem: Problem, rng: random.Random, checks: Sequence[str]) -> None:
    """Fit a model, and check its answers."""
    data = problem.rows()
    before, settings = contents(data), _words(model)
    try:
        model.fit(data)
    except InputError:
        _require("labels_" not in vars(model), "labels after a fit that was refused")
        raise
    finally:
        _require(contents(data) == before, "the input has changed")
    _require(_words(model) == settings or not _is_seeded(model), "the parameters have changed")
    try:
        _check_fitted(model, problem, rng, checks, data)
    except InputError as error:
        raise Finding(f"fitted, and then refused: {error}") from error


def _check_fitted(model: Any, problem: Problem, rng: random.Random, checks: Sequence[str], data: Any) -> None:
    """Check the answers of a fitted model for its training samples, in which nothing can be refused."""
    n, labels = problem.n, model.labels_
    given = getattr(model, "n_clusters_", None) or vars(model).get("n_clusters")
    n_clusters = int(given) if isinstance(given, (int, np.integer)) else 1 + int(labels.max())
    _check_labels(labels, n, n_clusters)
    sizes = np.bincount(labels)
    _require((np.diff(sizes) <= 0).all() and sizes[-1] > 0, f"clusters are not numbered by size: {sizes}")
    if hasattr(model, "predict"):
        predicted = model.predict(data)
        others = int((predicted != labels).sum())
        _require(
            others == 0 or type(model) in _OTHER_RULE, f"predict gives {others} of {n} training samples another label"
        )
        if "rows" in checks:
            _check_rows(model, problem, rng, predicted, n_clusters)
        if "outputs" in checks:
            _check_outputs(model, data, n)
        if "saved" in checks:
            _check_saved(model, data, problem.folder / "model.safetensors")
    if "again" in checks and _is_seeded(model):
        _check_again(model, data, rng.choice((1, 2, 4)))


def _check_scale(model: Any, problem: Problem) -> None:
    """Check that clear clusters are found, unless they are not found at scale 1 either."""
    if adjusted_rand_score(problem.truth, model.labels_) < 1:
        plain = clone(model).set_params(**{"views": None} if "views" in model.get_params() else {})
        found = adjusted_rand_score(problem.truth, plain.fit(problem.at_scale_1()).labels_)
        _require(found < 1, "clusters are found at scale 1, and not at this scale")


def _run(model: Any, problem: Problem, rng: random.Random, checks: Sequence[str]) -> str:
    problem.generate()
    if problem.layout is not None and model.get_params(deep=False).get("views", ...) is None:
        model.set_params(views=problem.layout)

    def check() -> None:
        with _documented_warnings():
            _check(model, problem, rng, checks)
            if problem.has_clear_clusters() and type(model) in METHODS.values() and _is_default(model, problem.k):
                _check_scale(model, problem)

    return answer_or_documented_error(check)


def cases(seed: int, folder: Path) -> Iterator[Case]:
    """Yield fits of all methods and wrappers; each depends on the seed and its own number only."""
    for i in range(10**9):
        rng = random.Random(f"estimators {seed} {i}")
        (kind,) = rng.choices(_KINDS, _RATES)
        model = _drawn_model(rng, kind)
        kernel = getattr(model, "kernel", None)
        gram = isinstance(kernel, Precomputed) or (isinstance(kernel, str) and kernel == "precomputed")
        n_views = 1 if kind in ("ksc", "kpca") and rng.random() < 0.95 else rng.choice((1, 2, 2, 2, 3))
        problem = drawn_problem(rng, n_views, folder, gram=gram)
        checks = rng.sample(("rows", "outputs", "saved", "again"), rng.choice((1, 2)))  # each costs as much as a fit

        def run(
            model: Any = model, problem: Problem = problem, rng: random.Random = rng, checks: Sequence[str] = checks
        ) -> str:
            return _run(model, problem, rng, checks)

        yield Case(f"{_words(model)} on {problem}; {', '.join(checks)}", run)
