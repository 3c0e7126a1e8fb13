"""The criterion by which the number of clusters is selected, and the weights of the models in the consensus."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from coview.views import Array

# These constants are fixed on half of the data sets of benchmarks/quality, which reports the results on the others.
_SIZE_ENTROPY_POWER = 1.5
_PER_LOG_CLUSTER, _PER_GAP = 0.75, 0.5
_STABILITY_POWER = 2
_LEAST_STABILITY = 0.01


def model_weights(stability: Sequence[float | None]) -> list[float]:
    """Return the weights of models in a consensus, at most 1: a more stable model has a larger weight."""
    known = np.array([1.0 if each is None else max(each, _LEAST_STABILITY) for each in stability])
    weights: list[float] = ((known / known.max()) ** _STABILITY_POWER).tolist()
    return weights


def criterion(numbers: Array, stability: Array, agreement: Array, size_entropy: Array, eigengap: Array) -> Array:
    """Return the criterion of the consensus for each number of clusters.

    It is the mean of the stability and of the agreement between the models, times a power of the size entropy, because
    one large cluster and a few tiny ones are stable and not informative. Few clusters agree more easily than many, so
    it is raised by the logarithm of their number, and by a large eigengap after the last eigenvalue that is used.
    """
    measured = np.maximum((stability + agreement) / 2, 0) * size_entropy**_SIZE_ENTROPY_POWER
    largest = eigengap.max(initial=0.0)
    relative = eigengap / largest if largest > 0 else np.zeros_like(eigengap)
    values: Array = measured * (1 + _PER_LOG_CLUSTER * np.log(numbers)) * (1 + _PER_GAP * relative)
    return values
