"""Give each view the kernel that suits it: sparse word counts beside measurements."""

import numpy as np
import scipy.sparse as sp

from coview import RBF, Cosine, TMvKSCR

rng = np.random.default_rng(0)
topic = rng.integers(3, size=300)
words = sp.csr_array(rng.poisson(np.kron(np.eye(3), np.ones(40))[topic] * 0.4 + 0.05))  # stays sparse throughout
sensors = rng.normal(size=(3, 6))[topic] * 2 + rng.normal(size=(300, 6))

model = TMvKSCR(3, kernel={"words": Cosine(), "sensors": RBF()}, rho=0.5, random_state=0)
model.fit({"words": words, "sensors": sensors})
print(np.bincount(model.labels_))
print(model.kernels_)  # the bandwidth that was chosen from the data
