"""KSC: kernel spectral clustering of one view."""

from __future__ import annotations

import numpy as np

from coview.core.eigen import top_eigenpairs
from coview.core.gram import Centering, Grams
from coview.core.sparse_fuse import fusion_of
from coview.methods.kernel_clusterer import LatentSpace, OneViewKernelClusterer


class KSC(OneViewKernelClusterer):
    """Cluster one view by weighted kernel PCA, D⁻¹ Ω H = H Λ with Ω the Gram matrix centred with weights D⁻¹.

    TMvKSCR with one view is this method.

    Parameters
    ----------
    n_clusters : int
        Number of clusters; the latent space has one dimension less.
    kernel : kernel or name
    assigner : assigner or name
        "directions" (k-means on score directions) or "codebook" (the published rule).
    dtype, batch_size, n_jobs, progress, random_state : as in TMvKSCR

    Attributes
    ----------
    labels_, latent_, scores_, eigenvalues_, explained_variance_ratio_, kernels_ : as in TMvKSCR

    References
    ----------
    Alzate, Suykens: Multiway spectral clustering with out-of-sample extensions through weighted kernel PCA, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> KSC(n_clusters=2).fit(np.array([[0.0], [0.1], [0.2], [5.0], [5.1]])).labels_
    array([0, 0, 0, 1, 1])
    """

    _keeps_sparse = True

    def _latent_space(self, grams: Grams, n_components: int) -> LatentSpace:
        fusion = fusion_of(grams, rho=1.0, kappa=dict.fromkeys(grams.similarities, 1.0))
        (gram,) = fusion.grams()
        degree = gram.positive_degrees()
        centering = Centering.learn(gram.matrix, weights=degree.min() / degree)
        fusion.add(gram, centering)
        eigenpairs = top_eigenpairs(fusion.problem(degree), n_components)
        latent = eigenpairs.vectors / np.sqrt(degree)[:, None]
        return LatentSpace.shared(eigenpairs, latent, {gram.name: centering}, fusion)
