"""Cluster three views of handwritten digits, then label images the model has not seen."""

from coview import Tuned
from coview.datasets import digits_views

views, digits = digits_views()  # a dictionary: pixels, fourier, gradients
train, new = views.take(slice(0, 1500)), views.take(slice(1500, None))

model = Tuned(n_clusters=10, random_state=0).fit(train)  # or n_clusters="auto"
print(model.reason_)  # how the settings were chosen: from the data, without labels
print(model.labels_[:10])  # clusters of the training images, 0 the largest
print(model.predict(new)[:10])  # clusters of new images, one by one or all at once
print(model.latent_.shape, model.eigenvalues_.round(3))
