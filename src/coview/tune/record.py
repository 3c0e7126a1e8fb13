"""The record of a search: the models for every evaluated number of clusters, and the selected number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

CONSENSUS = "consensus"  # the name of the consensus among the models
LARGEST_FALL = 0.3  # of a measure, from the samples of the search to all samples; less may be due to the smaller sample


@dataclass(frozen=True)
class EvaluatedModel:
    """A model or the consensus of all models, evaluated for one number of clusters; measures may not be available."""

    model: str
    n_samples: int
    n_clusters: int
    stability: float | None = None  # mean adjusted Rand index with labels of models of random subsets of the samples
    model_agreement: float | None = (
        None  # mean adjusted Rand index with the other models; of the consensus, between two models
    )
    size_entropy: float | None = None  # normalised entropy of the cluster sizes
    eigengap: float | None = (
        None  # eigenvalue k - 1 less eigenvalue k, for k clusters; of the consensus the mean of the models
    )
    weight: float | None = None  # of the model in the consensus; None for the consensus
    criterion: float | None = None  # by which numbers of clusters are compared; only of the consensus
    error: str | None = None  # why the model cannot be fitted
    stability_spread: float | None = None  # standard deviation over the subsets
    criterion_spread: float | None = None  # standard deviation over the subsets, by which the stability varies


@dataclass(frozen=True)
class FinalMeasures:
    """Measures of the consensus on all samples."""

    n_samples: int
    model_agreement: float | None  # mean adjusted Rand index between two of the models; None for a single model
    size_entropy: float  # normalised entropy of the cluster sizes

    def falls(self, found: EvaluatedModel) -> dict[str, tuple[float, float]]:
        """Return the measures that are far below those of the search, each with the value there and here."""
        pairs = {name: (getattr(found, name), getattr(self, name)) for name in ("model_agreement", "size_entropy")}
        return {
            name: (before, now)
            for name, (before, now) in pairs.items()
            if before is not None and now is not None and now < before - LARGEST_FALL
        }


@dataclass(frozen=True, repr=False)
class Tuning:
    """How the number of clusters was selected, and from which models the consensus is formed."""

    reason: str  # in words
    selected: int  # index of the consensus with the selected number
    final: FinalMeasures
    evaluations: tuple[EvaluatedModel, ...]

    def __repr__(self) -> str:
        chosen = self.evaluations[self.selected]
        return f"Tuning({chosen.n_clusters} clusters; {len(self.evaluations)} evaluations)"


def evaluated_numbers(evaluations: Sequence[EvaluatedModel]) -> list[EvaluatedModel]:
    """Return the evaluations of the consensus, in increasing number of clusters."""
    return sorted((each for each in evaluations if each.model == CONSENSUS), key=lambda each: each.n_clusters)


def at_limit(evaluations: Sequence[EvaluatedModel], selected: int) -> str:
    """Return the remark that the selected number is the largest of several, as a further clause; "" otherwise."""
    *fewer, most = (each.n_clusters for each in evaluated_numbers(evaluations))
    remark = f"; {most} is the largest number of clusters that was compared, so compare larger numbers, too"
    return remark if fewer and evaluations[selected].n_clusters == most else ""


def relative_criteria(evaluations: Sequence[EvaluatedModel]) -> dict[int, float]:
    """Return the criterion of each number of clusters as a fraction of the largest, in increasing number.

    A number other than the selected one with a fraction close to 1 is almost as well supported.
    """
    criteria = {each.n_clusters: each.criterion or 0.0 for each in evaluated_numbers(evaluations)}
    best = max(criteria.values(), default=0.0)
    return {number: value / best if best > 0 else 1.0 for number, value in criteria.items()}


def relative_spreads(evaluations: Sequence[EvaluatedModel]) -> dict[int, float]:
    """Return the spread of the criterion of each number of clusters as a fraction of the largest criterion."""
    numbers = evaluated_numbers(evaluations)
    best = max((each.criterion or 0.0 for each in numbers), default=0.0)
    return {each.n_clusters: (each.criterion_spread or 0.0) / best if best > 0 else 0.0 for each in numbers}


def is_complete(evaluations: Sequence[EvaluatedModel], selected: int) -> bool:
    """Return whether each number of clusters has one consensus with a criterion, and one of these is selected."""
    numbers = evaluated_numbers(evaluations)
    evaluated = [each for each in evaluations if each.error is None]
    return (
        0 <= selected < len(evaluations)
        and evaluations[selected] in numbers
        and [each.n_clusters for each in numbers] == sorted({each.n_clusters for each in evaluations})
        and all(each.criterion is not None for each in numbers)
        and all(each.size_entropy is not None for each in evaluated)
        and all(each.weight is not None for each in evaluated if each.model != CONSENSUS)
    )


def evaluated_models(evaluations: Sequence[EvaluatedModel], n_clusters: int) -> list[EvaluatedModel]:
    """Return the evaluations of the models for one number of clusters, and that of the consensus as the last."""
    same = [each for each in evaluations if each.n_clusters == n_clusters]
    return sorted(same, key=lambda each: each.model == CONSENSUS)
