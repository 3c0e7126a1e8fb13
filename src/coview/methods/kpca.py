"""KPCA: kernel PCA as the unweighted case of the same family, for comparison."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.core.eigen import top_eigenpairs
from coview.core.fuse import Fusion
from coview.core.gram import Centering
from coview.methods.base import LatentSpace, OneViewKernelClusterer
from coview.views import Array


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
    random_state : int, Generator, RandomState or None

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

    def _latent_space(self, grams: Mapping[str, Array], n_components: int) -> LatentSpace:
        ((name, gram),) = grams.items()
        ones = np.ones(len(gram))
        centering = Centering.learn(gram, weights=ones)
        fusion = Fusion(rho=1.0)
        fusion.add(centering.centre(gram), kappa=1.0)
        eigenpairs = top_eigenpairs(fusion.problem(ones), n_components)
        return LatentSpace(eigenpairs, eigenpairs.vectors, {name: centering})
