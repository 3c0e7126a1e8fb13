"""MvKSC: multi-view kernel spectral clustering, with one latent space for each view, coupled between views."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import DTypeLike

from coview.base.progress import ProgressParameter
from coview.core.assign import Assigner
from coview.core.eigen import Problem, top_eigenpairs
from coview.core.gram import Centering, Gram, Grams
from coview.core.tiles import SymmetricTiles
from coview.data.as_views import Layout
from coview.data.rows import narrowed
from coview.data.view import Array
from coview.data.views import Views
from coview.kernels import RBF, KernelParameter
from coview.methods.kernel_method import KernelMethod, LatentSpace, Weights
from coview.methods.mvksc_eigen import CoupledPairs, coupled_eigenpairs
from coview.model.fitting import Seed, WeightsParameter, weights_per_view


class MvKSC(KernelMethod):
    """Cluster several views by kernel spectral clustering of each, with scores that are coupled between views.

    The hidden features α_v of view v are leading eigenvectors of the coupled problem

        Σ_{u≠v} D_v^{-1/2} D_u^{-1/2} Ω_u α_u = λ (I - (gamma_v / n) D_v⁻¹ Ω_v) α_v   for every view v,

    where Ω_v is the centred Gram matrix of view v, D_v its degrees and n the number of samples. Positive λ mean
    agreement between the views, and the algebraically largest ones are used. A fit keeps one Gram matrix for each view
    in memory; the matrix of the coupled problem, (views × n)², is never formed.

    If only one view is not constant, the method is KSC of this view.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; each latent space has one dimension less.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each. See `coview.kernels`.
    gamma : number, list or mapping, optional
        Weights of the views' own variance against their agreement; 1 by default, also for views that a mapping does not
        name. They must be well below the number of samples.
    beta : number, list or mapping, optional
        Weights of the views in the ensemble score; 1 / number of views by default.
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (the published rule).
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.
    dtype : "auto", "float32" or "float64"
        Precision. "auto" computes Gram matrices in float32 above 2000 samples if all kernels are bounded, none is
        nearly constant, and the assigner does not depend on signs. Otherwise new samples are labelled in float32,
        except those whose label could differ in float64; see docs/performance.md.
    batch_size : "auto" or int
        Number of new samples that are scored at a time.
    n_jobs : int, optional
        Number of threads: -1 for all processors; by default as many as BLAS may use. Labels do not depend on it.
    progress : bool or callable, optional
        True shows a bar. A function is called as progress(stage, done, total) after each stage of a fit.
    random_state : int, Generator, RandomState or None
        Seed of the bandwidth rule (above 500 samples) and of the direction assigner.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size among the samples that the clusters are learnt
        from: the training samples, or those given to `recluster`.
    view_labels_ : dict
        Clusters of the training samples by each view's own scores, by view name.
    latent_ : dict of arrays of shape (n_samples, n_clusters - 1)
        Hidden features α_v, by view name.
    scores_ : array of shape (n_samples, n_clusters - 1)
        Ensemble score variables of the training samples.
    eigenvalues_ : array of shape (n_clusters - 1,)
        Eigenvalues in decreasing order.
    kernels_ : dict
        Kernels with their data-driven parameters, by view name.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    TMvKSCR : One latent space for all views instead of one for each.

    References
    ----------
    Houthuys, Langone, Suykens: Multi-view kernel spectral clustering, Information Fusion, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1], [9, 6])
    >>> text, image = (truth[:, None] * 9 + rng.normal(size=(15, d)) for d in (3, 5))
    >>> MvKSC(n_clusters=2).fit([text, image]).labels_
    array([0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1])
    """

    fuses_sparse = False
    latent_: dict[str, Array]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = RBF(),  # noqa: B008 - a frozen value
        gamma: WeightsParameter = None,
        beta: WeightsParameter = None,
        assigner: Assigner | str = "directions",
        views: Layout = None,
        dtype: DTypeLike = "auto",
        batch_size: int | Literal["auto"] = "auto",
        n_jobs: int | None = None,
        progress: ProgressParameter = None,
        random_state: Seed = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.kernel = kernel
        self.gamma = gamma
        self.beta = beta
        self.assigner = assigner
        self.views = views
        self.dtype = dtype
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    def view_weights(self, names: tuple[str, ...]) -> Weights:
        gamma = weights_per_view("gamma", self.gamma, names, default=1.0, unnamed=1.0, may_vanish=True)
        return Weights(weights_per_view("beta", self.beta, names, default=1 / len(names)), gamma)

    def n_matrices(self, views: Views) -> int:
        return len(views)

    def latent_space(self, grams: Grams, weights: Weights, n_components: int) -> LatentSpace:
        matrices, centerings, roots, informative = [], {}, {}, []
        for v, gram in enumerate(grams.kept()):
            degree = gram.positive_degrees()
            roots[gram.name] = np.sqrt(degree)[:, None]
            centerings[gram.name] = gram.centre_by(degree)
            if not gram.is_zero_up_to_rounding(centerings[gram.name].centred_diagonal(gram.matrix.diagonal())):
                informative.append(v)
            matrices.append(_centred_and_normalised(gram, centerings[gram.name], v in informative))
        if len(informative) <= 1:
            pairs = _solve_one_view(matrices, informative[0] if informative else 0, n_components, grams.bandwidth)
        else:
            shrink = np.array([weights.own[name] / grams.n_samples for name in centerings])
            pairs = coupled_eigenpairs(matrices, shrink, n_components, grams.bandwidth)
        images = zip(roots.items(), pairs.images, strict=True)
        scores = np.sum([weights.beta[name] * root * image for (name, root), image in images], axis=0)
        latent = {name: u / root for (name, root), u in zip(roots.items(), pairs.vectors, strict=True)}
        # A graph scores training samples as new samples, so that duplicate rows have equal scores.
        return LatentSpace(pairs.values, latent, centerings, None if grams.n_sparse else scores, notes=pairs.notes)

    def published_space(self, space: LatentSpace, dtype: Any) -> dict[str, Any]:
        return {"latent_": {name: narrowed(alpha, dtype) for name, alpha in space.latent.items()}}


def _centred_and_normalised(gram: Gram, centering: Centering, informative: bool) -> SymmetricTiles:
    """Return D^{-1/2} Ω D^{-1/2} of the centred Gram matrix Ω, in the memory of the Gram matrix."""
    matrix, scale = gram.matrix, 1 / np.sqrt(gram.degree)
    if informative:
        matrix.for_each(lambda t, rows, columns: centering.centre(matrix.tiles[t], rows, columns))
    else:  # all rows are equal, and centring leaves rounding errors of either sign
        scale[:] = 0
    return matrix.scale_both_sides(scale)


def _solve_one_view(
    matrices: Sequence[SymmetricTiles], informative: int, n_components: int, bandwidth: str
) -> CoupledPairs:
    """Return the eigenpairs of KSC for the only informative view, in the form of a coupled problem."""
    pairs = top_eigenpairs(Problem.of(matrices[informative], bandwidth=bandwidth), n_components)
    vectors = np.zeros((len(matrices), *pairs.vectors.shape))
    vectors[informative] = pairs.vectors
    return CoupledPairs(pairs.values, vectors, vectors * pairs.values, pairs.notes)
