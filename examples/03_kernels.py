"""Set one kernel per view: cosine for sparse word counts, RBF for dense measurements."""

import numpy as np
import scipy.sparse as sp

from coview import RBF, Cosine, TMvKSCR

rng = np.random.default_rng(0)
topic = rng.integers(3, size=300)
words = sp.csr_array(rng.poisson(np.kron(np.eye(3), np.ones(40))[topic] * 0.4 + 0.05))  # sparse views stay sparse
sensors = rng.normal(size=(3, 6))[topic] * 2 + rng.normal(size=(300, 6))

model = TMvKSCR(3, kernel={"words": Cosine(), "sensors": RBF()}, rho=0.5, random_state=0)
model.fit({"words": words, "sensors": sensors})
print(np.bincount(model.labels_))
print(model.kernels_)  # with the bandwidth estimated from the data
