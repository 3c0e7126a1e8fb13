"""Label new samples: the label of a sample is the same alone, in a chunk, or with all other samples."""

import numpy as np

from coview import TMvKSCR
from coview.datasets import digits_views

views, _ = digits_views()
train, new = views.take(slice(0, 800)), views.take(slice(800, None))
model = TMvKSCR(n_clusters=10, random_state=0).fit(train)

together = model.predict(new)
one_by_one = np.concatenate([model.predict(new.take([i])) for i in range(50)])
print("same labels:", np.array_equal(together[:50], one_by_one))

# Labels and scores of each view alone. Samples on which the views disagree are uncertain.
per_view = model.predict(new, per_view=True)
scores = model.transform(new, per_view=True)
print({name: (labels.shape, scores[name].shape) for name, labels in per_view.items()})
