"""KPCA: kernel PCA as the unweighted case of the same family, for comparison."""

from __future__ import annotations

import numpy as np

from coview.core.eigen import top_eigenpairs
from coview.core.fuse import Fusion
from coview.core.gram import Centering, Grams
from coview.methods.kernel_clusterer import LatentSpace, OneViewKernelClusterer


class KPCA(OneViewKernelClusterer):
    """Cluster one view in its leading kernel principal components: Ω H = H Λ with Ω the plainly centred Gram matrix.

    It is KSC without degrees, and knows nothing of the graph: clusters show only where they make up the variance.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; the latent space has one dimension less.
    kernel : kernel or name
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (sign patterns).
    dtype, batch_size, n_jobs, progress, random_state : as in TMvKSCR

    Attributes
    ----------
    labels_, latent_, scores_, eigenvalues_, explained_variance_ratio_, kernels_ : as in TMvKSCR

    References
    ----------
    Suykens: Deep restricted kernel machines using conjugate feature duality, 2017.

    Examples
    --------
    >>> import numpy as np
    >>> KPCA(n_clusters=2).fit(np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])).labels_
    array([0, 0, 0, 1, 1])
    """

    def _latent_space(self, grams: Grams, n_components: int) -> LatentSpace:
        (gram,) = grams
        ones = np.ones(grams.n_samples)
        centering = Centering.learn(gram.matrix, weights=ones)
        fusion = Fusion(grams, rho=1.0, kappa={gram.name: 1.0})
        fusion.add(gram, centering)
        eigenpairs = top_eigenpairs(fusion.problem(ones), n_components)
        return LatentSpace.shared(eigenpairs, eigenpairs.vectors, {gram.name: centering}, fusion)
