"""Cluster three views of handwritten digits, then label images the model has not seen."""

from coview import TMvKSCR
from coview.datasets import digits_views

views, digits = digits_views()  # a dictionary: pixels, fourier, gradients
train, new = views.take(slice(0, 1500)), views.take(slice(1500, None))

model = TMvKSCR(n_clusters=10, random_state=0).fit(train)
print(model.labels_[:10])  # clusters of the training images, 0 the largest
print(model.predict(new)[:10])  # clusters of new images, one by one or all at once
print(model.latent_.shape, model.explained_variance_ratio_.round(3))
