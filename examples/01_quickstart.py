"""Cluster three views of handwritten digits, then label images that are not in the training set."""

from coview import Coview
from coview.datasets import digits_views

images, digits = digits_views()  # a mapping of three arrays: pixels, fourier, gradients
views, new = images.take(slice(0, 1500)), images.take(slice(1500, None))

model = Coview(n_clusters="auto").fit(views)  # or a number, such as n_clusters=10
print(model.reason_)  # how the number of clusters was selected; the digits are not used
print(model.support_.level)  # how well the clusters are supported: none, weak, moderate or strong
print(model.labels_[:10])  # clusters of the training images, numbered by decreasing size
print(model.predict(new)[:10])  # clusters of new images
print(model.predict_proba(new).max(axis=1)[:10].round(2))  # how certain they are
