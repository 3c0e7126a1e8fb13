"""MvKSC: multi-view kernel spectral clustering, one latent space for each view, coupled with those of the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from coview.core.eigen import Problem, top_eigenpairs
from coview.core.gram import Centering, Gram, Grams
from coview.core.spectral import scale_both_sides
from coview.core.tiles import SymmetricTiles
from coview.kernels import RBF
from coview.methods.base import weights_per_view
from coview.methods.kernel_clusterer import KernelClusterer, LatentSpace
from coview.methods.mvksc_eigen import CoupledPairs, coupled_eigenpairs
from coview.views import Array, Views


class MvKSC(KernelClusterer):
    """Cluster several views by kernel spectral clustering of each, with scores that should agree between views.

    The hidden features α_v of view v are leading eigenvectors of the coupled problem

        Σ_{u≠v} D_v^{-1/2} D_u^{-1/2} Ω_u α_u = λ (I - (gamma_v / n) D_v⁻¹ Ω_v) α_v   for every view v,

    where Ω_v is the centred Gram matrix of view v, D_v its degrees and n the number of samples. Only the
    algebraically largest λ are of use: with the sign of a view turned around, every agreement has its negative.
    Fitting keeps one Gram matrix for each view; the matrix of the coupled problem, (views × n)², is never formed.

    With one view (that is not constant) there is nothing to agree with, and the method is KSC.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; each latent space has one dimension less.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each. See `coview.kernels`.
    gamma : number, list or mapping, optional
        Weights of the views' own variance beside their agreement; 1 by default, and well below the number of samples.
    beta : number, list or mapping, optional
        Weights of the views in the ensemble score; 1 / number of views by default.
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (the published rule).
    views, dtype, batch_size, n_jobs, progress, random_state : as in TMvKSCR

    Attributes
    ----------
    latent_ : dict of arrays of shape (n_samples, n_clusters - 1)
        Hidden features α_v by view.
    labels_, view_labels_, scores_, eigenvalues_, kernels_ : as in TMvKSCR

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

    _gamma: dict[str, float]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: Any = RBF(),  # noqa: B008 - a frozen value
        gamma: Any = None,
        beta: Any = None,
        assigner: Any = "directions",
        views: Any = None,
        dtype: Any = "auto",
        batch_size: Any = "auto",
        n_jobs: int | None = None,
        progress: Any = None,
        random_state: Any = None,
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

    def _views_to_fit(self, X: Any) -> Views:
        views = super()._views_to_fit(X)
        self._gamma = weights_per_view("gamma", self.gamma, views.names, default=1.0, may_vanish=True)
        self._beta = weights_per_view("beta", self.beta, views.names, default=1 / len(views))
        return views

    def _n_matrices(self, views: Views) -> int:
        return len(views)

    def _latent_space(self, grams: Grams, n_components: int) -> LatentSpace:
        matrices, centerings, roots, telling = [], {}, {}, []
        for v, gram in enumerate(grams.kept()):
            degree = gram.positive_degrees()
            roots[gram.name] = np.sqrt(degree)[:, None]
            centerings[gram.name] = Centering.learn(gram.matrix, weights=degree.min() / degree)
            if not gram.is_rounding(centerings[gram.name].centred_diagonal(gram.matrix.diagonal())):
                telling.append(v)
            matrices.append(_normalised(gram, centerings[gram.name], v in telling))
        if len(telling) <= 1:  # nothing to agree with
            pairs = _one_view(matrices, telling[0] if telling else 0, n_components)
        else:
            shrink = np.array([self._gamma[name] / grams.n_samples for name in centerings])
            pairs = coupled_eigenpairs(matrices, shrink, n_components)
        scores = {name: root * image for (name, root), image in zip(roots.items(), pairs.images, strict=True)}

        def ensemble(beta: Mapping[str, float]) -> Array:
            return sum((beta[name] * e for name, e in scores.items()), start=np.zeros(1))

        latent = {name: u / root for (name, root), u in zip(roots.items(), pairs.vectors, strict=True)}
        return LatentSpace(pairs.values, latent, centerings, ensemble)

    def _keep_latent(self, space: LatentSpace, dtype: Any) -> None:
        self.latent_ = {name: alpha.astype(dtype, copy=False) for name, alpha in space.latent.items()}


def _normalised(gram: Gram, centering: Centering, telling: bool) -> SymmetricTiles:
    """D^{-1/2} Ω D^{-1/2} of the centred Gram matrix Ω, in the memory of the Gram matrix."""
    matrix, scale = gram.matrix, (1 / np.sqrt(gram.degree)).astype(gram.matrix.dtype)
    if telling:
        matrix.for_each(lambda t, rows, columns: centering.centre(matrix.tiles[t], rows, columns))
    else:  # rows without a difference: what centring leaves is rounding, of either sign
        scale[:] = 0
    return scale_both_sides(matrix, scale)


def _one_view(matrices: Sequence[SymmetricTiles], telling: int, n_components: int) -> CoupledPairs:
    """KSC's own problem for the one view that tells anything, in the form of a coupled one."""
    matrix = matrices[telling]
    pairs = top_eigenpairs(Problem(matrix, exponent=0, trace=float(matrix.diagonal().sum())), n_components)
    vectors = np.zeros((len(matrices), *pairs.vectors.shape))
    vectors[telling] = pairs.vectors
    return CoupledPairs(pairs.values, vectors, vectors * pairs.values)
