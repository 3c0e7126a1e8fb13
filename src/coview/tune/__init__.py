"""The number of clusters and the weights of models, selected without labels: models, criterion and search."""

from coview.tune.tuned import Tuned

__all__ = ["Tuned"]
