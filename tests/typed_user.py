"""Code as a user would write it; test_types.py checks it with mypy, and it is not run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

from coview import (
    COMIC,
    KSC,
    MVSCBP,
    OPMC,
    RBF,
    SFMC,
    Concat,
    CoReg,
    Coview,
    Entropy,
    FixedSize,
    MvKSC,
    NeighborGraph,
    PerView,
    Preprocessed,
    Summary,
    TMvKSCR,
    Views,
    as_views,
    load,
    summarize,
)
from coview.compare import Comparison, compare
from coview.evaluate.number import ClusterNumber
from coview.evaluate.support import Support

Labels = NDArray[np.int64]
Array = NDArray[Any]


def names_have_types() -> None:
    views = as_views({"text": np.eye(9), "image": np.ones((9, 2))})
    assert_type(views, Views)
    assert_type(views.names, tuple[str, ...])
    assert_type(views.take([0, 1]), Views)

    model = TMvKSCR(3, kernel=RBF(0.5), kappa={"text": 2}, beta=[1.0, 2.0], progress=True, random_state=0).fit(views)
    assert_type(model, TMvKSCR)
    assert_type(model.labels_, Labels)
    assert_type(model.latent_, Array)
    assert_type(model.scores_, Array)
    assert_type(model.eigenvalues_, Array)
    assert_type(model.explained_variance_ratio_, Array)
    assert_type(model.view_labels_, dict[str, Labels])
    assert_type(model.view_names_, tuple[str, ...])
    assert_type(model.predict(views), Labels)
    assert_type(model.predict(views, per_view=True), dict[str, Labels])
    assert_type(model.predict(views, novel_below=0.01), Labels)
    assert_type(model.predict_proba(views), Array)
    assert_type(model.score_samples(views), Array)
    assert_type(model.score_samples(views, per_view=True), dict[str, Array])
    assert_type(model.transform(views, per_view=True), dict[str, Array])
    assert_type(model.fit_predict(views), Labels)

    assert_type(KSC(3, kernel="linear", dtype="float32", batch_size=64).fit(views).latent_, Array)
    assert_type(MvKSC(3, kernel={"text": "rbf", "image": NeighborGraph()}).fit(views).latent_, dict[str, Array])
    assert_type(OPMC(3, random_state=np.random.default_rng(0)).fit(views).predict(views), Labels)
    assert_type(MVSCBP(3, n_anchors="auto").fit(views).predict(views), Labels)
    assert_type(CoReg(3, scheme="centroid", coupling=[0.1, 0.2]).fit(views).labels_, Labels)
    assert_type(SFMC(3, anchors=[0, 4]).fit_predict(views), Labels)
    assert_type(COMIC().fit(views).n_clusters_, int)

    selected = Coview("auto", progress=True).fit(views)
    assert_type(selected, Coview)
    assert_type(selected.labels_, Labels)
    assert_type(selected.scores_, Array)
    assert_type(selected.n_clusters_, int)
    assert_type(selected.reason_, str)
    assert_type(selected.number_, ClusterNumber | None)
    assert_type(selected.support_, Support | None)
    assert_type(selected.predict(views), Labels)
    assert_type(selected.predict(views, per_view=True), dict[str, Labels])
    assert_type(selected.predict(views, novel_below=0.01), Labels)
    assert_type(selected.predict_proba(views), Array)
    assert_type(selected.score_samples(views), Array)
    assert_type(selected.score_samples(views, per_view=True), dict[str, Array])
    assert_type(selected.view_contributions(views), dict[str, Array])
    Coview(range(2, 9), views=[4, 5], n_jobs=-1)

    fixed = FixedSize(Preprocessed(TMvKSCR(3), {"text": "tfidf+l2"}), n_train=0.5, select=Entropy()).fit(views)
    assert_type(fixed.labels_, Labels)
    assert_type(fixed.train_rows_, Labels)
    assert_type(fixed.predict(views, per_view=True), dict[str, Labels])
    assert_type(Concat(KSC(3)).fit(views).predict(views), Labels)
    assert_type(PerView(KSC(3)).fit(views).predict(views), Labels)
    assert_type(PerView(KSC(3)).fit(views).best_view_, str)

    loaded = load("model.safetensors")
    assert_type(loaded.labels_, Labels)
    assert_type(loaded.predict(views), Labels)
    assert_type(loaded.view_n_features_, dict[str, int])
    if isinstance(loaded, TMvKSCR):
        assert_type(loaded.latent_, Array)

    assert_type(summarize(model, views), Summary)
    assert_type(compare(views, 3, progress=True), Comparison)


def mistakes_are_found(views: Views) -> None:
    """Without the comments mypy reports an error in each line; it also reports comments without an error."""
    TMvKSCR("three")  # type: ignore[arg-type]
    TMvKSCR(3, kernel=2)  # type: ignore[arg-type]
    TMvKSCR(3, kappa="text")  # type: ignore[arg-type]
    TMvKSCR(3, progress="yes")  # type: ignore[arg-type]
    TMvKSCR(3, random_state="seed")  # type: ignore[arg-type]
    Coview("three")  # type: ignore[arg-type]
    FixedSize(KSC(3), n_train="half")  # type: ignore[arg-type]
    print(load("model.safetensors").nonsense)  # type: ignore[attr-defined]
