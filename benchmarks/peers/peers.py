"""The compared methods of other libraries and of coview, each a function from views to labels.

Methods that need tables get standardised (z-scored) columns of dense views and L2-normalised rows of sparse views,
unless stated otherwise. `TMvKSCR` and `Coview` get the views as they are, because their defaults include preprocessing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from operator import mul
from typing import Any

import scipy.sparse as sp

from benchmarks.quality.baselines import BASELINES, KM_STANDARD, UMAP_SETTINGS, k_means, side_by_side, umap
from benchmarks.sweep import preprocessed, standard_or_l2
from coview import Concat, Coview, FixedSize, Preprocessed
from coview.data.as_views import as_views
from coview.data.rows import as_array
from coview.data.view import Array, among_all
from coview.data.views import Views
from coview.methods import METHODS

MOST_COMPONENTS = 30  # principal components of wide views, for methods that need few columns


@dataclass(frozen=True)
class Peer:
    """One method: `fit` returns the labels of views for a number of clusters and a seed."""

    package: str  # its distribution
    fit: Callable[[Views, int, int], Any]
    predicts: bool = False  # labels new samples
    missing: bool = False  # accepts samples that lack views
    takes_k: bool = True  # has the number of clusters as a parameter, or a parameter that is searched for it
    linear: bool = False  # keeps no similarities of all pairs of samples, so it may finish with a million of them
    is_large_only: bool = False  # has no purpose for few samples

    def runs_in(self, part: str) -> bool:
        """Return whether the method is part of the tables of quality, of missing views, of times, or of large data."""
        return {"missing": self.missing, "large": self.linear}.get(part, not self.is_large_only)


def tables(views: Views) -> list[Array]:
    """Return each view as a dense table with standardised columns or L2-normalised rows; NaN for missing rows."""
    found = []
    for name, step in zip(views, standard_or_l2(views), strict=True):
        rows = as_array(preprocessed(as_views({name: views.observed(name)}), step)[name])
        found.append(among_all(rows, views.present[name]) if name in views.present else rows)
    return found


def _few_columns(table: Array, seed: int) -> Array:
    """Return the principal components of a wide table."""
    from sklearn.decomposition import PCA

    most = min(MOST_COMPONENTS, *table.shape)
    return table if table.shape[1] <= most else PCA(most, random_state=seed).fit_transform(table)


def _method(name: str, views: Views, k: int, seed: int) -> Array:
    method = METHODS[name]
    estimator = method() if name == "comic" else method(k)
    if "random_state" in estimator.get_params():
        estimator.set_params(random_state=seed)
    if name in ("ksc", "kpca"):
        estimator = Concat(estimator)
    if name != "tmvkscr":
        estimator = Preprocessed(estimator, steps=list(standard_or_l2(views)))
    return estimator.fit(views).labels_


def _coview(views: Views, k: int, seed: int) -> Array:
    return Coview(k, random_state=seed).fit(views).labels_


def _fixed_size(views: Views, k: int, seed: int) -> Array:
    return FixedSize(METHODS["tmvkscr"](k, random_state=seed), random_state=seed).fit(views).labels_


def _gmm(views: Views, k: int, seed: int) -> Array:
    from sklearn.mixture import GaussianMixture

    table = _few_columns(as_array(side_by_side(views, "standard")), seed)
    return GaussianMixture(k, n_init=5, random_state=seed).fit_predict(table)


def _hdbscan(table: Array) -> Array:
    from sklearn.cluster import HDBSCAN

    return HDBSCAN(copy=True).fit_predict(table)


def _umap_hdbscan(views: Views, k: int, seed: int) -> Array:
    return _hdbscan(umap(side_by_side(views, "l2"), seed))


def _intersection(views: Views, seed: int) -> Array:
    """Return coordinates of the intersection of the views' fuzzy graphs: a * b in umap-learn."""
    from umap import UMAP

    rows = preprocessed(views, "l2").values()
    rows = [sp.csr_matrix(x) if sp.issparse(x) else x for x in rows]  # UMAP does not accept sparse arrays
    return reduce(mul, [UMAP(**UMAP_SETTINGS, random_state=seed).fit(x) for x in rows]).embedding_


def _intersection_kmeans(views: Views, k: int, seed: int) -> Array:
    return k_means(_intersection(views, seed), k, seed)


def _intersection_hdbscan(views: Views, k: int, seed: int) -> Array:
    return _hdbscan(_intersection(views, seed))


def _wnn(views: Views, k: int, seed: int) -> Array:
    from anndata import AnnData
    from mudata import MuData

    from benchmarks.wnn import run_wnn

    parts = {name: AnnData(_few_columns(x, seed)) for name, x in zip(views, tables(views), strict=True)}
    for name, part in parts.items():
        part.var_names = [f"{name}{j}" for j in range(part.n_vars)]
    return run_wnn(MuData(parts), k, dict.fromkeys(parts, "X"))[0]


def _mofa(views: Views, k: int, seed: int) -> Array:
    from mofapy2.run.entry_point import entry_point

    mofa = entry_point()
    mofa.set_data_options(scale_views=True)
    mofa.set_data_matrix([[x] for x in tables(views)], likelihoods=["gaussian"] * len(views))
    mofa.set_model_options()
    mofa.set_train_options(seed=seed, convergence_mode="fast", quiet=True)
    mofa.build()
    mofa.run()
    return k_means(mofa.model.nodes["Z"].getExpectation(), k, seed)


def _snf(views: Views, k: int, seed: int) -> Array:
    import snf
    from sklearn.cluster import spectral_clustering

    n_neighbors = min(20, views.n_samples - 1)
    affinities = snf.make_affinity(tables(views), metric="sqeuclidean", K=n_neighbors, mu=0.5)
    return spectral_clustering(snf.snf(affinities, K=n_neighbors), n_clusters=k, random_state=seed)


def _polyview(name: str, views: Views, k: int, seed: int) -> Array:
    import polyview.cluster

    if name == "MultiViewNMF":  # needs values of at least 0
        scaled = [as_array(x) for x in preprocessed(views, "minmax").values()]
        return polyview.cluster.MultiViewNMF(n_components=k, random_state=seed).fit_predict(scaled)
    return getattr(polyview.cluster, name)(n_clusters=k, random_state=seed).fit_predict(tables(views))


def _imml(name: str, views: Views, k: int, seed: int) -> Array:
    import imml.cluster

    return getattr(imml.cluster, name)(n_clusters=k, random_state=seed).fit_predict(tables(views))


def _imml_mlmf(views: Views, k: int, seed: int) -> Array:
    import imml.cluster

    # The default engine is Octave, although the documentation names Python.
    return imml.cluster.MLMF(n_clusters=k, random_state=seed, engine="python").fit_predict(tables(views))


def _imml_deep(name: str, views: Views, k: int, seed: int) -> Array:
    import imml.cluster

    getattr(imml.cluster, name)(n_clusters=k, Xs=tables(views))  # raises an ImportError without the extra "deep"
    raise NotImplementedError("its training with the extra 'deep' is not part of this comparison")


_COVIEW_MISSING = ("tmvkscr",)
_IMML = (  # fast methods last, so that no core of a run is idle for long at its end
    *("SUMO", "IMSCAGL", "OMVC", "DAIMC", "MKKMIK", "PIMVC", "IMSR", "NEMO", "MONET", "OSLFIMVC", "EEIMVC", "LFIMVC"),
    *("SIMCADC", "OPIMC"),
)
PEERS: Mapping[str, Peer] = {
    "coview Coview": Peer("coview", _coview, predicts=True, missing=True, linear=True),
    **{
        f"coview {METHODS[name].__name__}": Peer(
            "coview",
            partial(_method, name),
            predicts="predict" in METHODS[name].abilities,
            missing=name in _COVIEW_MISSING,
            takes_k=name != "comic",
            linear=name in ("tmvkscr", "opmc", "sfmc", "mvscbp"),
        )
        for name in METHODS
    },
    "coview FixedSize(TMvKSCR)": Peer("coview", _fixed_size, predicts=True, linear=True, is_large_only=True),
    **{
        f"{'umap-learn' if 'UMAP' in title else 'scikit-learn'} {title}": Peer(
            "umap-learn" if "UMAP" in title else "scikit-learn",
            fit,
            predicts="spectral" not in title,
            linear=title == KM_STANDARD,
        )
        for title, fit in BASELINES.items()
    },
    "scikit-learn GMM, std": Peer("scikit-learn", _gmm, predicts=True, linear=True),
    "umap-learn UMAP + HDBSCAN, L2": Peer("umap-learn", _umap_hdbscan, takes_k=False),
    "umap-learn intersection + k-means, L2": Peer("umap-learn", _intersection_kmeans),
    "umap-learn intersection + HDBSCAN, L2": Peer("umap-learn", _intersection_hdbscan, takes_k=False),
    "muon WNN + leiden": Peer("muon", _wnn),
    "mofapy2 MOFA + k-means": Peer("mofapy2", _mofa, missing=True, linear=True),
    "snfpy SNF + spectral": Peer("snfpy", _snf),
    **{
        f"polyview {name}": Peer(
            "polyview",
            partial(_polyview, name),
            predicts=name == "MultiViewKMeans",
            linear=name in ("MultiViewKMeans", "MultiViewNMF"),
        )
        for name in (
            "MultiViewKMeans",
            "MultiViewCoRegSpectralClustering",
            "MultiViewCoTrainSpectralClustering",
            "MultiViewNMF",
        )
    },
    **{
        f"iMML {name}": Peer(
            "imml", partial(_imml, name), missing=True, takes_k=name != "MONET", linear=name in ("OMVC", "OPIMC")
        )
        for name in _IMML
    },
    "iMML MLMF": Peer("imml", _imml_mlmf, missing=True),
    **{
        f"iMML {name}": Peer("imml", partial(_imml_deep, name), predicts=name == "MRGCN", missing=True)
        for name in ("MRGCN", "IntegrAO")
    },
}
