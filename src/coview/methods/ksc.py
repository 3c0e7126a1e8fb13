"""KSC: kernel spectral clustering of one view."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from coview.core.eigen import top_eigenpairs
from coview.core.fuse import Fusion
from coview.core.gram import Centering, positive_degrees
from coview.methods.base import LatentSpace, OneViewKernelClusterer
from coview.views import Array


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
    random_state : int, Generator, RandomState or None

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

    def _latent_space(self, grams: Mapping[str, Array], n_components: int) -> LatentSpace:
        ((name, gram),) = grams.items()
        degree = positive_degrees(name, self.kernels_[name], gram)
        centering = Centering.learn(gram, weights=degree.min() / degree)
        fusion = Fusion(rho=1.0)
        fusion.add(centering.centre(gram), kappa=1.0)
        eigenpairs = top_eigenpairs(fusion.problem(degree), n_components)
        return LatentSpace(eigenpairs, eigenpairs.vectors / np.sqrt(degree)[:, None], {name: centering})
