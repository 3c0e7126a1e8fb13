"""Cluster three views of handwritten digits, then label images that are not in the training set."""

from coview import Tuned
from coview.datasets import digits_views

views, digits = digits_views()  # a mapping of three arrays: pixels, fourier, gradients
train, new = views.take(slice(0, 1500)), views.take(slice(1500, None))

model = Tuned(n_clusters=10, random_state=0).fit(train)  # or n_clusters="auto"
print(model.reason_)  # the models, their weights and measures; no labels are used
print(model.labels_[:10])  # clusters of the training images, numbered by decreasing size
print(model.predict(new)[:10])  # clusters of new images
print(model.scores_.shape, model.eigenvalues_[:9].round(3))  # the scores of all models
