"""Made-up summaries for the tests of plots and report: no model is fitted, and every part can be left out."""

from dataclasses import replace

import numpy as np

from coview.core.tree import Branch
from coview.evaluate.number import ClusterNumber, Part
from coview.evaluate.structure import Structure
from coview.evaluate.support import ClusterGroup, Support
from coview.summary import (
    Cluster,
    Feature,
    FeatureMeans,
    Points,
    Refits,
    SampleMap,
    Samples,
    Similarities,
    Summary,
    Truth,
    Uncertain,
    ViewSummary,
)

VIEWS = {"pixels": 64, "fourier": 40, "gradients": 32}


def make_summary(n_samples=400, n_clusters=10, n_drawn=5000, n_listed=20_000, n_components=None, seed=0, views=VIEWS):
    """A summary like that of handwritten digits: clusters on rays, in three views of different noise."""
    rng = np.random.default_rng(seed)
    n_components = n_clusters - 1 if n_components is None else n_components
    truth = np.arange(n_samples) % n_clusters
    labels = np.where(rng.random(n_samples) < 0.9, truth, rng.integers(n_clusters, size=n_samples))
    centres = rng.normal(size=(n_clusters, n_components))
    drawn = np.sort(rng.permutation(n_samples)[:n_drawn])
    listed = np.union1d(drawn, rng.permutation(n_samples)[:n_listed])[:n_listed]
    own = {
        name: np.where(rng.random(n_samples) < 0.6 + 0.1 * i, labels, (labels + 1) % n_clusters)
        for i, name in enumerate(views)
    }
    certain = np.random.default_rng(seed + 1)
    memberships = np.round(1 - 0.7 * certain.random(n_samples) ** 2, 3)
    novelties = np.round(certain.random(n_samples), 3)
    sizes = np.bincount(labels, minlength=n_clusters)
    contingency = np.zeros((n_clusters, n_clusters), dtype=int)
    np.add.at(contingency, (labels, truth), 1)
    places = rng.uniform(-0.9, 0.9, size=(n_clusters, 2))[labels[drawn]] + rng.normal(scale=0.03, size=(len(drawn), 2))
    positions = tuple(map(tuple, np.round(places, 5).tolist()))
    compared = np.sort(labels[drawn[:60]])
    alike = np.where(compared[:, None] == compared, 0.8, 0.2) + 0.1 * rng.random((len(compared), len(compared)))
    return Summary(
        method="TMvKSCR",
        parameters={"n_clusters": n_clusters, "kernel": "RBF(sigma2=None)", "rho": 0.5, "random_state": 0},
        n_samples=n_samples,
        n_train=min(n_samples, 2000),
        n_clusters=n_clusters,
        of_training=True,
        views=tuple(
            ViewSummary(
                name,
                width,
                n_samples,
                name == "fourier",
                "standardised columns",
                "RBF(sigma2=9.277343749999998)",
                1.0 + i,
                0.85 - 0.25 * i,
                0.6 + 0.1 * i,
                tuple(np.bincount(own[name], minlength=n_clusters).tolist()),
                (),
            )
            for i, (name, width) in enumerate(views.items())
        ),
        clusters=tuple(
            Cluster(
                label=c,
                size=int(sizes[c]),
                fraction=float(sizes[c] / n_samples),
                stability=0.9,
                silhouette=0.2 + 0.6 * c / n_clusters,
                margin=0.1 + 0.5 * c / n_clusters,
                membership=0.7 + 0.2 * c / n_clusters,
                kept_together={name: float(np.mean(theirs[labels == c] == c)) for name, theirs in own.items()},
                contributions={name: 0.3 - 0.1 * ((i + c) % 3) for i, name in enumerate(views)},
                contradicted={name: 0.05 + 0.1 * ((i + c) % 3) for i, name in enumerate(views)},
                features=tuple(
                    Feature(name, f"{name}_{c}_{j}", (-1) ** j * (3 - 0.3 * j), 1.5, 0.25)
                    for j, name in enumerate(list(views) * 2)
                ),
                classes={str(d): int(contingency[c, d]) for d in np.argsort(-contingency[c])[:3]},
            )
            for c in range(n_clusters)
        ),
        support=make_support(n_clusters),
        refits=Refits(20, (n_samples + 1) // 2, True, (1,) * n_clusters),
        silhouette=0.42,
        rho=0.5,
        eigenvalues=tuple(float(x) for x in 1 / np.arange(1, max(n_clusters, 2))),
        explained_variance_ratio=tuple(float(x) for x in 0.1 / np.arange(1, max(n_clusters, 2))),
        further_eigenvalues=(0.05, 0.04, 0.03),
        tree=make_tree(n_clusters) if n_clusters > 2 else None,
        feature_means=FeatureMeans(
            views=tuple(views) * 2,
            names=tuple(f"{name}_{j}" for j, name in enumerate(list(views) * 2)),
            values=tuple(tuple(float(x) for x in rng.normal(size=2 * len(views))) for _ in range(n_clusters)),
        ),
        uncertain=tuple(
            Uncertain(int(row), f"image {row}", int(labels[row]), int((labels[row] + 1) % n_clusters), 0.001 * i, 0.4)
            for i, row in enumerate(drawn[:20])
        ),
        truth=Truth(
            classes=tuple(map(str, range(n_clusters))),
            contingency=tuple(map(tuple, contingency.tolist())),
            ari=0.81,
            nmi=0.83,
            accuracy=0.91,
            purity=0.92,
            largest_class=0.25,
        ),
        samples=Samples(
            rows=tuple(listed.tolist()),
            names=tuple(f"image {row}" for row in listed),
            labels=tuple(labels[listed].tolist()),
            classes=tuple(map(str, truth[listed])),
            nearest_others=tuple(((labels[listed] + 1) % n_clusters).tolist()),
            margins=tuple(float(x) for x in np.round(rng.random(len(listed)), 5)),
            memberships=tuple(memberships[listed].tolist()),
            novelties=tuple(novelties[listed].tolist()),
            best_views=tuple(list(views)[row % len(views)] for row in listed.tolist()),
            stability=tuple(row % 21 / 20 for row in listed.tolist()),
        ),
        points=Points(
            rows=tuple(drawn.tolist()),
            samples=tuple(f"image {row}" for row in drawn),
            labels=tuple(labels[drawn].tolist()),
            classes=tuple(map(str, truth[drawn])),
            margins=tuple(rng.random(len(drawn)).tolist()),
            memberships=tuple(memberships[drawn].tolist()),
            novelties=tuple(novelties[drawn].tolist()),
            scores=_rays(centres[labels[drawn]], rng),
            positions=positions,
            view_labels={name: tuple(theirs[drawn].tolist()) for name, theirs in own.items()},
            view_scores={name: _rays(centres[labels[drawn]], rng) for name in views},
        ),
        map=SampleMap("made up", tuple(drawn[:1000].tolist()), positions[:1000]),
        similarities=Similarities("fused similarity", tuple(compared.tolist()), tuple(map(tuple, alike.tolist()))),
        number=None,
        notes=("2 samples of view pixels were dropped, because no other view has them.",),
        seconds={"read": 0.02, "fit": 3.5},
        versions={"coview": "0.1.0", "numpy": "2.0.0"},
        command="coview fit --view pixels=pixels.npy --view fourier=fourier.npz -k 10 -o run/",
    )


def make_tree(n_clusters):
    """One cluster, the last, splits off cluster 0 at each step, and a sample of cluster 0 changes its cluster."""
    return tuple(
        branch
        for k in range(2, n_clusters)
        for branch in (
            Branch(k, 0, k + 1, 0, 100 * (n_clusters - k)),
            Branch(k, 0, k + 1, k, 100),
            Branch(k, 0, k + 1, 1, 1),
            *(Branch(k, c, k + 1, c, 100) for c in range(1, k)),
        )
    )


FOUND, NOT_FOUND = Structure(6.5, 0.15, 0.006), Structure(6.5, 0.004, 0.006)


def make_support(n_clusters=10, level="moderate"):
    """Support of some level; clusters 0 to 2 have no valley between them if it is moderate, else none or all have."""
    joined = {"strong": [], "moderate": [0, 1, 2]}.get(level, list(range(n_clusters)))
    if len(joined) > n_clusters or (len(joined) == n_clusters and level == "moderate"):
        joined = []
    structure = NOT_FOUND if level == "none" else FOUND
    alone = [c for c in range(n_clusters) if c not in joined]
    groups = [ClusterGroup(tuple(joined), 40 * len(joined), structure)] * bool(joined)
    return Support(
        n_samples=40 * n_clusters,
        clusters=tuple(range(n_clusters)),
        valleys=(None,)
        if n_clusters == 1
        else tuple(0.7 + 0.01 * c if c in joined else 0.3 for c in range(n_clusters)),
        nearest=(None,) if n_clusters == 1 else tuple((c + 1) % n_clusters for c in range(n_clusters)),
        groups=(*groups, *(ClusterGroup((c,), 40, None) for c in alone)),
    )


def make_number(n_clusters=10):
    """A number of clusters of which two are in one part, without a valley between them."""
    parts = (Part(80, FOUND, 2), *(Part(40, NOT_FOUND, 1) for _ in range(n_clusters - 2)))
    return ClusterNumber(n_clusters, n_clusters, parts, ((n_clusters - 1, 9), (2, 3)), 20)


def _rays(centres, rng):
    noisy = centres + 0.3 * rng.normal(size=centres.shape)
    return tuple(map(tuple, noisy.tolist()))


def bare(summary):
    """The same summary without its optional parts."""
    return replace(
        summary,
        views=tuple(
            replace(view, kernel=None, kappa=None, agreement=None, agreement_without=None, sizes=None)
            for view in summary.views
        ),
        clusters=tuple(
            replace(
                c,
                stability=None,
                silhouette=None,
                margin=None,
                membership=None,
                kept_together={},
                contributions={},
                contradicted={},
                features=(),
                classes=None,
            )
            for c in summary.clusters
        ),
        support=None,
        refits=None,
        silhouette=None,
        rho=None,
        eigenvalues=None,
        explained_variance_ratio=None,
        further_eigenvalues=None,
        tree=None,
        feature_means=None,
        uncertain=(),
        truth=None,
        samples=replace(
            summary.samples,
            classes=None,
            nearest_others=None,
            margins=None,
            memberships=None,
            novelties=None,
            best_views=None,
            stability=None,
        ),
        points=replace(
            summary.points,
            classes=None,
            margins=None,
            memberships=None,
            novelties=None,
            scores=tuple(() for _ in summary.points.rows),
            positions=(),
            view_labels={},
            view_scores={},
        ),
        map=None,
        similarities=None,
        notes=(),
        seconds={},
        command=None,
    )
