"""KSC: kernel spectral clustering of one view."""

from __future__ import annotations

from coview.core.fuse import fuse
from coview.core.gram import Grams
from coview.methods.kernel_method import LatentSpace, OneViewKernelMethod, Weights, solve_shared


class KSC(OneViewKernelMethod):
    """Cluster one view by weighted kernel PCA, D⁻¹ Ω H = H Λ with Ω the Gram matrix centred with weights D⁻¹.

    TMvKSCR with one view is the same method.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; the latent space has one dimension less.
    kernel : kernel or name
        See `coview.kernels`.
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (the published rule).
    dtype : "auto", "float32" or "float64"
        Precision. "auto" computes the Gram matrix in float32 above 2000 samples if the kernel is bounded and not nearly
        constant, and the assigner does not depend on signs. Otherwise new samples are labelled in float32, except
        those whose label could differ in float64; see docs/performance.md.
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
        Clusters of the training samples, by view name.
    latent_ : array of shape (n_samples, n_clusters - 1)
        Hidden features.
    scores_ : array of shape (n_samples, n_clusters - 1)
        Score variables of the training samples.
    eigenvalues_, explained_variance_ratio_ : arrays of shape (n_clusters - 1,)
        Eigenvalues in decreasing order, and each as a fraction of the trace.
    kernels_ : dict
        The kernel with its data-driven parameters, by view name.
    view_names_, view_n_features_, n_features_in_, feature_names_in_ : tuple, dict, int, array
        Views, number of features of each and in total, and column names if X is one data frame.

    See Also
    --------
    TMvKSCR : The same for several views.
    Concat : Cluster the columns of all views as one view.
    KPCA : Kernel PCA with clusters from its scores.

    References
    ----------
    Alzate, Suykens: Multiway spectral clustering with out-of-sample extensions through weighted kernel PCA, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> KSC(n_clusters=2).fit(np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])).labels_
    array([0, 0, 0, 1, 1])
    """

    def latent_space(self, grams: Grams, weights: Weights, n_components: int) -> LatentSpace:
        fused = fuse(grams, kappa=dict.fromkeys(grams.similarities, 1.0), rho=1.0)
        return solve_shared(fused, n_components, weights.beta)
