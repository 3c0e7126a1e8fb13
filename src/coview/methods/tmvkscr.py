"""TMvKSCR: tensor-based multi-view kernel spectral clustering with a shared latent space."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, Self

from numpy.typing import DTypeLike

from coview.base.parameters import check_integer, check_number
from coview.base.progress import ProgressParameter
from coview.core.assign import Assigner
from coview.core.fuse import fuse
from coview.core.gram import Gram, Grams
from coview.data.as_views import Layout
from coview.data.view import Array
from coview.data.views import Views
from coview.kernels import RBF, KernelParameter, kernel_per_view
from coview.methods.kernel_method import KernelMethod, LatentSpace, Weights, solve_shared
from coview.model.fitting import Seed, WeightsParameter, check_coverage, weights_per_view


class TMvKSCR(KernelMethod):
    """Cluster several views through one shared latent space and one eigendecomposition.

    The latent space H holds the leading eigenvectors of

        (Σ_v D_v)⁻¹ (rho Σ_v kappa_v Ω_v + (1 - rho) ⊙_v Ω_v) H = H Λ,

    where Ω_v is the centred Gram matrix of view v and D_v its degrees. Two samples have a large entry in the sum if
    they are similar in some view, and in the elementwise product if they are similar in all views. The size of the
    problem does not depend on the number of views. With neighbour graphs for all views, as by default, the matrices
    stay sparse; with other kernels fitting takes O(n²) memory and O(n² Σ_v d_v) time.

    The defaults suit most data (docs/quality.md). `TMvKSCR.as_published(n_clusters)` has the setting of the paper.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; the latent space has one dimension less.
    kernel : kernel, name, list or mapping
        One kernel for all views, or one for each; see `coview.kernels`. "auto" is a neighbour graph with a metric that
        suits the view: see `AutoKernel`.
    rho : float in [0, 1]
        Weight of the sum against the product: 1 is the sum alone, 0 the product alone.
    kappa : number, list or mapping, optional
        Weights of the views in the sum; 1 by default, also for views that a mapping does not name.
    beta : number, list or mapping, optional
        Weights of the views in the ensemble score; 1 / number of views by default.
    regularization : "auto" or number
        Added to the degrees of each view, in units of their mean. Nearly isolated samples have small degrees and can
        dominate a leading eigenvector, which then separates them instead of clusters. "auto" is 1 if a few samples
        dominate an eigenvector, otherwise 0, as in the paper. It costs a second fit if it is 1.
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (the paper's rule).
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
        Seed of the direction assigner, and of the bandwidth rule of RBF() above 500 samples.

    Attributes
    ----------
    labels_ : array of shape (n_samples,)
        Clusters of the training samples, numbered by decreasing size among the samples that the clusters are learnt
        from: the training samples, or those given to `recluster`.
    view_labels_ : dict
        Clusters of the training samples by each view's own scores, by view name.
    latent_ : array of shape (n_samples, n_clusters - 1)
        Hidden features that all views share.
    scores_ : array of shape (n_samples, n_clusters - 1)
        Ensemble score variables of the training samples.
    eigenvalues_, explained_variance_ratio_ : arrays of shape (n_clusters - 1,)
        Eigenvalues in decreasing order, and each as a fraction of the trace.
    kernels_ : dict
        Kernels with their data-driven parameters, by view name.
    regularization_ : float
        The regularization that is used.
    kappa_ : dict
        Weights of the views in the sum, by view name.
    dominant_rows_ : tuple of int
        Row numbers of the samples that dominate an eigenvector without regularization, mostly outliers: the
        eigenvector u has fewer than m = n / (10 n_clusters) effective samples (1 / Σ u⁴), and these have u² > 1 / m.
        Empty for most data.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    Coview : The consensus of many clusterings, without settings.
    FixedSize : Train on some of the samples, and label all.
    KSC : The same for one view.

    References
    ----------
    Tao, Tonin, Patrinos, Suykens: Tensor-based multi-view spectral clustering via shared latent space.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = np.repeat([0, 1, 2], 20)
    >>> text, image = (rng.normal(size=(3, d))[truth] * 4 + rng.normal(size=(60, d)) for d in (5, 8))
    >>> model = TMvKSCR(n_clusters=3, random_state=0).fit({"text": text, "image": image})
    >>> np.bincount(model.labels_)
    array([20, 20, 20])
    >>> bool((model.predict({"text": text[:1], "image": image[:1]}) == model.labels_[0]).all())
    True
    """

    may_lack_views = True
    latent_: Array
    explained_variance_ratio_: Array
    regularization_: float
    kappa_: dict[str, float]
    dominant_rows_: tuple[int, ...]

    def __init__(
        self,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = "auto",
        rho: float = 1.0,
        kappa: WeightsParameter = None,
        beta: WeightsParameter = None,
        regularization: float | Literal["auto"] = "auto",
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
        self.rho = rho
        self.kappa = kappa
        self.beta = beta
        self.regularization = regularization
        self.assigner = assigner
        self.views = views
        self.dtype = dtype
        self.batch_size = batch_size
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @classmethod
    def as_published(
        cls,
        n_clusters: int = 2,
        *,
        kernel: KernelParameter = RBF(),  # noqa: B008 - a frozen value
        rho: float = 0.5,
        assigner: Assigner | str = "codebook",
        **parameters: Any,
    ) -> Self:
        """Return the method as in the paper: RBF kernels, sum and product, codebook, and degrees as they are.

        Parameters
        ----------
        n_clusters, kernel, rho, assigner
            As in the constructor, with the defaults of the paper.
        **parameters
            Further parameters of the constructor.

        Returns
        -------
        TMvKSCR

        Examples
        --------
        >>> TMvKSCR.as_published(3)
        TMvKSCR(assigner='codebook', kernel=RBF(sigma2=None), n_clusters=3,
                regularization=0, rho=0.5)
        """
        return cls(n_clusters, kernel=kernel, rho=rho, assigner=assigner, regularization=0, **parameters)

    def check_coverage(self, views: Views) -> None:
        check_coverage(
            views, check_integer("n_clusters", self.n_clusters, 1), kernel_per_view(self.kernel, views.names)
        )

    def view_weights(self, names: tuple[str, ...]) -> Weights:
        check_number("rho", self.rho, 0, 1, or_else=" (0: product of the views, 1: sum of the views)")
        kappa = weights_per_view("kappa", self.kappa, names, default=1.0, unnamed=1.0)
        beta = weights_per_view("beta", self.beta, names, default=1 / len(names))
        if not (isinstance(self.regularization, str) and self.regularization == "auto"):
            check_number("regularization", self.regularization, 0, or_else=", or 'auto'")
        return Weights(beta, kappa)

    def n_matrices(self, views: Views) -> int:
        return 2 if len(views) == 1 or self.rho == 1 else 3  # and their product

    def latent_space(self, grams: Grams, weights: Weights, n_components: int) -> LatentSpace:
        auto = self.regularization == "auto"
        regularization = 0.0 if auto else float(self.regularization)
        space = self._solved(grams, weights, regularization, n_components)
        dominant = tuple(space.dominant_rows.tolist())
        if auto and dominant:
            regularization = 1.0
            space = self._solved(replace(grams, report=lambda stage: None), weights, regularization, n_components)
        learnt = {"regularization_": regularization, "dominant_rows_": dominant, "kappa_": weights.own}
        return replace(space, learnt={**space.learnt, **learnt})

    def _solved(self, grams: Grams, weights: Weights, regularization: float, n_components: int) -> LatentSpace:
        def regularized(gram: Gram) -> Array:
            return gram.regularized(regularization)

        return solve_shared(fuse(grams, weights.own, float(self.rho), regularized), n_components, weights.beta)
