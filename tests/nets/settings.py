"""Methods, kernels, wrappers and kinds of data, with the numbers that are compared bit by bit."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans

from coview import (
    COMIC,
    KPCA,
    KSC,
    MVSCBP,
    OPLFMVC,
    OPMC,
    RBF,
    SFMC,
    TSVDMSC,
    Concat,
    CoReg,
    Coview,
    FixedSize,
    FuzzyGraph,
    InputError,
    Linear,
    MvKSC,
    NeighborGraph,
    NormalizedPolynomial,
    PerView,
    Preprocessed,
    TMvKSCR,
)

N_TRAINING, N_NEW = 120, 15


def _draw(n: int, seed: int) -> tuple[dict[str, Any], Any]:
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, n, p=[0.5, 0.3, 0.2])
    centres = np.random.default_rng(7)
    found = {}
    for name, width, gap in (("text", 6, 2.5), ("image", 9, 1.5)):
        found[name] = centres.normal(size=(3, width))[truth] * gap + rng.normal(size=(n, width))
    return found, truth


def _dense(n: int, seed: int) -> Any:
    return _draw(n, seed)[0]


def _float32(n: int, seed: int) -> Any:
    return {name: x.astype(np.float32) for name, x in _dense(n, seed).items()}


def _sparse(n: int, seed: int) -> Any:
    views = _dense(n, seed)
    words = np.maximum(np.round(views["text"]), 0)
    words[words.sum(axis=1) == 0, 0] = 1
    return {"text": sp.csr_array(words), "image": np.abs(views["image"])}


def _missing(n: int, seed: int) -> Any:
    views = _dense(n, seed)
    views["text"][::6] = np.nan
    views["image"][1::6] = np.nan
    return views


def _one(n: int, seed: int) -> Any:
    return {"text": _dense(n, seed)["text"]}


def _filled(n: int, seed: int) -> Any:
    views = _dense(n, seed)
    views["image"][::9, 2] = np.nan
    return views


def _categories(n: int, seed: int) -> Any:
    import pandas as pd

    views, truth = _draw(n, seed)
    kind = np.array(["a", "b", "c"])[(truth + (np.arange(n) % 11 == 0)) % 3]
    frame = pd.DataFrame(views["text"], columns=[f"t{i}" for i in range(6)])
    frame["kind"] = pd.Categorical(kind, categories=["a", "b", "c"])
    return {"text": frame, "image": views["image"]}


DATA: Mapping[str, Callable[[int, int], Any]] = {
    "dense": _dense,
    "float32": _float32,
    "sparse": _sparse,
    "missing": _missing,
    "one view": _one,
    "empty cells": _filled,
    "categories": _categories,
}

K: dict[str, Any] = {"n_clusters": 3, "random_state": 0}
SETTINGS: Mapping[str, tuple[str, Callable[[], Any]]] = {
    "tmvkscr": ("dense", lambda: TMvKSCR(**K)),
    "tmvkscr float32": ("float32", lambda: TMvKSCR(**K)),
    "tmvkscr dtype float32": ("dense", lambda: TMvKSCR(**K, dtype="float32", kernel=RBF())),
    "tmvkscr sparse": ("sparse", lambda: TMvKSCR(**K)),
    "tmvkscr missing": ("missing", lambda: TMvKSCR(**K)),
    "tmvkscr missing rbf": ("missing", lambda: TMvKSCR(**K, kernel=RBF(), rho=0.5)),
    "tmvkscr one view": ("one view", lambda: TMvKSCR(**K)),
    "tmvkscr categories": ("categories", lambda: TMvKSCR(**K)),
    "tmvkscr rbf": ("dense", lambda: TMvKSCR(**K, kernel=RBF(), rho=0.25, kappa=[1, 2], beta=[0.3, 0.7])),
    "tmvkscr rbf sparse": ("sparse", lambda: TMvKSCR(**K, kernel=RBF())),
    "tmvkscr published": ("dense", lambda: TMvKSCR.as_published(3, random_state=0)),
    "tmvkscr kernels": ("dense", lambda: TMvKSCR(**K, kernel=[NormalizedPolynomial(degree=2), RBF(sigma2=20.0)])),
    "tmvkscr graph": ("dense", lambda: TMvKSCR(**K, kernel=NeighborGraph(12), rho=0.5)),
    "tmvkscr fuzzy and rbf": ("dense", lambda: TMvKSCR(**K, kernel=[FuzzyGraph(10), RBF()])),
    "tmvkscr linear": ("sparse", lambda: TMvKSCR(**K, kernel=Linear())),
    "tmvkscr regularised": ("dense", lambda: TMvKSCR(**K, regularization=0.5)),
    "mvksc": ("dense", lambda: MvKSC(**K)),
    "mvksc codebook": ("dense", lambda: MvKSC(**K, assigner="codebook", gamma=2.0)),
    "mvksc kernels": ("dense", lambda: MvKSC(**K, kernel=[NormalizedPolynomial(degree=2), RBF()])),
    "ksc": ("one view", lambda: KSC(**K)),
    "ksc auto": ("one view", lambda: KSC(**K, kernel="auto")),
    "kpca": ("one view", lambda: KPCA(**K)),
    "coreg": ("dense", lambda: CoReg(**K)),
    "coreg centroid": ("dense", lambda: CoReg(**K, scheme="centroid")),
    "tsvdmsc": ("dense", lambda: TSVDMSC(**K)),
    "comic": ("dense", lambda: COMIC(random_state=0)),
    "oplfmvc": ("dense", lambda: OPLFMVC(**K)),
    "opmc": ("dense", lambda: OPMC(**K)),
    "opmc weights": ("sparse", lambda: OPMC(**K, learn_weights=True)),
    "sfmc": ("dense", lambda: SFMC(**K)),
    "mvscbp": ("dense", lambda: MVSCBP(**K)),
    "mvscbp affinity": ("float32", lambda: MVSCBP(**K, weighting="affinity")),
    "coview": ("dense", lambda: Coview(3, random_state=0)),
    "coview auto": ("dense", lambda: Coview(random_state=0)),
    "coview range": ("dense", lambda: Coview(range(4, 6), random_state=0)),
    "coview missing": ("missing", lambda: Coview(3, random_state=0)),
    "coview sparse float32": ("sparse", lambda: Coview(3, random_state=0)),
    "coview categories": ("categories", lambda: Coview(random_state=0)),
    "concat ksc": ("dense", lambda: Concat(KSC(**K))),
    "concat coview": ("dense", lambda: Concat(Coview(3, random_state=0))),
    "concat kmeans": ("dense", lambda: Concat(KMeans(3, n_init=2, random_state=0))),
    "concat categories": ("categories", lambda: Concat(KSC(**K, kernel="auto"))),
    "per view ksc": ("dense", lambda: PerView(KSC(**K))),
    "per view kmeans": ("dense", lambda: PerView(KMeans(3, n_init=2, random_state=0))),
    "preprocessed tmvkscr": ("dense", lambda: Preprocessed(TMvKSCR(**K, kernel=RBF()))),
    "preprocessed by view": ("sparse", lambda: Preprocessed(TMvKSCR(**K), {"text": "tfidf+l2", "image": "pca3"})),
    "preprocessed opmc": ("sparse", lambda: Preprocessed(OPMC(**K), {"text": "tfidf+l2"})),
    "preprocessed empty cells": ("empty cells", lambda: Preprocessed(TMvKSCR(**K), "median+standard")),
    "preprocessed coview missing": ("missing", lambda: Preprocessed(Coview(3, random_state=0))),
    "preprocessed concat": ("dense", lambda: Preprocessed(Concat(KSC(**K)), "standard+block")),
    "preprocessed coreg": ("dense", lambda: Preprocessed(CoReg(**K))),
    "fixed size": ("dense", lambda: FixedSize(TMvKSCR(**K), n_train=60, random_state=0)),
    "fixed size entropy": (
        "dense",
        lambda: FixedSize(TMvKSCR(**K, kernel=RBF()), n_train=50, select="entropy", n_repeats=2, random_state=1),
    ),
    "fixed size missing": ("missing", lambda: FixedSize(TMvKSCR(**K), n_train=70, random_state=0)),
    "fixed size opmc": ("dense", lambda: FixedSize(OPMC(**K), n_train=60, random_state=0)),
    "fixed size mvscbp": ("dense", lambda: FixedSize(MVSCBP(**K), n_train=60, random_state=0)),
    "fixed size coview": ("dense", lambda: FixedSize(Coview(3, random_state=0), n_train=80, random_state=0)),
    "fixed size preprocessed": (
        "dense",
        lambda: FixedSize(Preprocessed(TMvKSCR(**K, kernel=RBF())), n_train=60, select="kmeans", random_state=0),
    ),
    "fixed size categories": ("categories", lambda: FixedSize(TMvKSCR(**K), n_train=60, random_state=0)),
    "fixed size concat kmeans": (
        "dense",
        lambda: FixedSize(Concat(KMeans(3, n_init=2, random_state=0)), n_train=60, random_state=0),
    ),
}
_LEARNT = ("labels_", "scores_", "eigenvalues_", "explained_variance_ratio_", "embedding_", "objective_", "train_rows_")
_BY_VIEW = ("view_labels_", "view_weights_", "merits_", "centroids_")


def results(name: str) -> dict[str, Any]:
    """Return the numbers of one setting: what is learnt, and the answers for new samples, one by one and together."""
    kind, make = SETTINGS[name]
    draw = DATA[kind]
    model = make().fit(draw(N_TRAINING, 0))
    found = {each: np.asarray(getattr(model, each)) for each in _LEARNT if getattr(model, each, None) is not None}
    for each in _BY_VIEW:
        found |= {f"{each}/{view}": np.asarray(x) for view, x in getattr(model, each, {}).items()}
    new = draw(N_NEW, 1)
    for method in ("predict", "transform", "predict_proba", "score_samples"):
        if hasattr(model, method):
            found[method] = np.asarray(getattr(model, method)(new))
    for method in ("view_contributions",):
        if hasattr(model, method):
            found |= {f"{method}/{view}": x for view, x in getattr(model, method)(new).items()}
    for method in ("predict", "score_samples"):
        try:
            of_views = getattr(model, method)(new, per_view=True)
        except (AttributeError, TypeError, InputError):  # some have none
            continue
        found |= {f"{method} per view/{view}": x for view, x in of_views.items()}
    return found


def arithmetic() -> Any:
    """Return numbers whose last bits depend on the processor, threads and libraries, but not on this package."""
    x = np.random.default_rng(0).normal(size=(120, 30))
    gram = np.exp(-np.square(x[:, None] - x).sum(axis=2) / 60)
    single = (x.astype(np.float32) @ x.T.astype(np.float32)).sum(axis=0)
    one_thread = float(os.environ.get("OPENBLAS_NUM_THREADS") == "1")  # as in `make test`
    return np.concatenate([[one_thread], np.linalg.eigvalsh(gram), (gram @ x)[:, 0], np.linalg.svd(x)[1], single])
