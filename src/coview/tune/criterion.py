"""The criterion by which the number of clusters is selected, and the weights of the models in the consensus."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from coview.views import Array

_STABILITY_POWER = 2
_LEAST_STABILITY = 0.01


class Constants(NamedTuple):
    """Constants of the criterion, fixed on half of the data sets of benchmarks/quality, which reports the others."""

    size_entropy_power: float = 0.5
    per_log_cluster: float = 1.0
    per_gap: float = 0.75


USED = Constants()


def model_weights(stability: Sequence[float | None]) -> list[float]:
    """Return the weights of models in a consensus, at most 1: a more stable model has a larger weight."""
    known = np.array([1.0 if each is None else max(each, _LEAST_STABILITY) for each in stability])
    weights: list[float] = ((known / known.max()) ** _STABILITY_POWER).tolist()
    return weights


def criterion(
    numbers: Array,
    stability: Array,
    agreement: Array,
    size_entropy: Array,
    eigengap: Array,
    *,
    constants: Constants = USED,
) -> Array:
    """Return the criterion of the consensus for each number of clusters.

    It is the mean of the stability and of the agreement between the models, times a power of the size entropy, because
    one large cluster and a few tiny ones are stable and not informative. Few clusters agree more easily than many, so
    it is raised by the logarithm of their number, and by a large gap between eigenvalues k - 1 and k.
    """
    measured = np.maximum((stability + agreement) / 2, 0) * size_entropy**constants.size_entropy_power
    largest = eigengap.max(initial=0.0)
    relative = eigengap / largest if largest > 0 else np.zeros_like(eigengap)
    values: Array = measured * (1 + constants.per_log_cluster * np.log(numbers)) * (1 + constants.per_gap * relative)
    return values
