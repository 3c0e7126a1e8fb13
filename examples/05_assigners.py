"""Compare two assigners on the same scores: the codebook of the paper, and k-means on score directions."""

from sklearn.metrics import adjusted_rand_score

from coview import Codebook, Directions, TMvKSCR
from coview.datasets import digits_views

views, digits = digits_views()
for assigner in (Codebook(), Directions()):
    model = TMvKSCR(10, assigner=assigner, random_state=0).fit(views)
    print(f"{assigner}: ARI {adjusted_rand_score(digits, model.labels_):.2f}")
