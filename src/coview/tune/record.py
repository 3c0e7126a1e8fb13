"""The record of a search: every evaluated setting, the selected one, and why it is selected."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from coview.registry import KERNELS

_KERNEL_NAMES = {entry.class_name: name for name, entry in KERNELS.entries.items()}


@dataclass(frozen=True)
class EvaluatedSetting:
    """A setting, evaluated on the samples of one round for one number of clusters.

    The criterion and the measures are None for a setting that cannot be fitted.
    """

    round: int  # from 1
    n_samples: int  # of the round
    steps: tuple[str, ...]  # of preprocessing, in the order of the views
    kernel: str
    rho: float
    kappa: tuple[float, ...]  # weights in the sum, in the order of the views
    n_clusters: int
    criterion: float | None = None  # settings are compared by it
    consensus: float | None = None  # mean adjusted Rand index with the labels of the other settings
    stability: float | None = None  # mean adjusted Rand index between halves of the samples
    agreement: float | None = None  # mean adjusted Rand index with the labels by each view's own scores
    size_entropy: float | None = None  # normalised entropy of the cluster sizes
    line_fit: float | None = None  # balanced line fit, which the search does not use
    membership: float | None = None  # mean membership strength, which the search does not use
    eigengap: float | None = None  # after the last eigenvalue used; only the number of clusters depends on it
    error: str | None = None  # why the setting cannot be fitted

    @property
    def setting(self) -> tuple[Any, ...]:
        """The setting, without the round and the number of clusters."""
        return self.steps, self.kernel, self.rho, self.kappa

    @property
    def kernel_name(self) -> str:
        """The kernel by the name that estimators and the command accept, without its parameters."""
        name = self.kernel.partition("(")[0]
        return _KERNEL_NAMES.get(name, name)

    @property
    def weights(self) -> str:
        """The weights of the views in short; empty if all are 1."""
        return "" if set(self.kappa) == {1.0} else " ".join(f"{weight:g}" for weight in self.kappa)

    @property
    def label(self) -> str:
        """The setting in short: steps of each view unless all are equal."""
        steps = self.steps[:1] if len(set(self.steps)) == 1 else self.steps
        weights = f" · κ {self.weights}" if self.weights else ""
        return f"{self.kernel_name} · {' / '.join(steps)} · ρ {self.rho:g}{weights}"


@dataclass(frozen=True)
class FinalMeasures:
    """The measures of the selected setting, fitted on all samples; None if they cannot be computed."""

    n_samples: int
    agreement: float | None  # mean adjusted Rand index with the labels by each view's own scores
    stability: float | None  # mean adjusted Rand index between halves of a random subset
    n_stability: int  # size of this subset
    size_entropy: float  # normalised entropy of the cluster sizes

    def falls(self, found: EvaluatedSetting) -> dict[str, tuple[float, float]]:
        """Return the measures that are far below those of the search, each with the value there and here."""
        pairs = {name: (getattr(found, name), getattr(self, name)) for name in FINAL_MEASURES}
        return {
            name: (before, now)
            for name, (before, now) in pairs.items()
            if before is not None and now is not None and now < before - LARGEST_FALL
        }


FINAL_MEASURES = ("agreement", "stability", "size_entropy")
LARGEST_FALL = 0.3  # of a measure, from the samples of a round to all samples; less may be due to the smaller sample

# The columns that a setting without an error has.
MEASURES = tuple(field.name for field in fields(EvaluatedSetting) if field.default is None and field.name != "error")


@dataclass(frozen=True, repr=False)
class Tuning:
    """How settings were selected."""

    reason: str  # the selection in words
    selected: int  # index of the selected setting
    final: FinalMeasures | None  # of the selected setting on all samples; None for one cluster
    evaluations: tuple[EvaluatedSetting, ...]

    def __repr__(self) -> str:
        return f"Tuning({self.evaluations[self.selected].label}; {len(self.evaluations)} evaluations)"


def mean_criteria(evaluations: Sequence[EvaluatedSetting]) -> dict[EvaluatedSetting, float]:
    """Return the mean criterion of each setting over its round and the earlier ones, which decides the search.

    Settings that are compared have been in the same rounds, so the mean selects as the sum does.
    """
    of_setting: dict[Any, list[EvaluatedSetting]] = {}
    for each in evaluations:
        if each.criterion is not None:
            of_setting.setdefault((each.setting, each.n_clusters), []).append(each)
    return {
        each: float(np.mean([other.criterion for other in alike if other.round <= each.round]))
        for alike in of_setting.values()
        for each in alike
    }


def ranked_evaluations(evaluations: Sequence[EvaluatedSetting], n_clusters: int) -> list[EvaluatedSetting]:
    """Return the evaluations, best first: later rounds before earlier ones, then this number of clusters first."""
    means = mean_criteria(evaluations)

    def order(each: EvaluatedSetting) -> tuple[Any, ...]:
        return each.criterion is None, -each.round, each.n_clusters != n_clusters, -means.get(each, 0.0)

    return sorted(evaluations, key=order)


def ranked_settings(evaluations: Sequence[EvaluatedSetting], n_clusters: int) -> list[EvaluatedSetting]:
    """Return the last evaluation of each setting for this number of clusters, best first, without failures."""
    last: dict[Any, EvaluatedSetting] = {}
    for each in ranked_evaluations(evaluations, n_clusters):
        if each.n_clusters == n_clusters and each.criterion is not None:
            last.setdefault(each.setting, each)
    return list(last.values())
