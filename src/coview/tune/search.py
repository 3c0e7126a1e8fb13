"""The search: all models are fitted on some samples and on random subsets of these, for several numbers of clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.base import clone

from coview.compose.consensus import diffusion_weights
from coview.core.agreement import adjusted_rand, mean_agreements, size_entropy
from coview.core.assign import FEW_STARTS, Labels, OneCluster
from coview.core.select import draw_rows
from coview.errors import InputError
from coview.methods.nested import nested_models
from coview.parts import part_of_fit
from coview.preprocess.profile import varies
from coview.progress import Progress
from coview.rows import l2_normalize
from coview.runtime import Workers
from coview.tune.criterion import criterion, model_weights
from coview.tune.models import models_of, number_of_components
from coview.tune.record import CONSENSUS, EvaluatedModel, evaluated_models
from coview.views import Array, Views

_SAMPLES = 600
_SAMPLES_PER_CLUSTER = 20
_LEAST_SAMPLES = 8  # subsets of fewer are not informative
_FRACTION = 0.7  # of the samples in a subset
_SUBSETS, _MOST_SUBSETS = 3, 6
_SUBSETS_TIMES_SAMPLES = 1500  # within these bounds of the number of subsets: fewer samples need more


class SearchResult(NamedTuple):
    """The evaluations of all models and numbers of clusters, the index of the selected consensus, and the weights."""

    evaluations: tuple[EvaluatedModel, ...]
    selected: int
    weights: dict[str, float]  # of the models that can be fitted
    labels: dict[int, tuple[int, ...]]  # of the rows of the search by the consensus, by number of clusters

    @property
    def n_clusters(self) -> int:
        """The selected number of clusters."""
        return self.evaluations[self.selected].n_clusters


class _Scores(NamedTuple):
    """What a model finds in a set of samples: scores and eigenvalues for the largest number of clusters."""

    scores: Array
    eigenvalues: Array

    def labels(self, k: int) -> Labels:
        """Return the labels for k clusters, which depend on the first k components."""
        return _labels(self.scores[:, :k], k)


@dataclass(frozen=True)
class Search:
    """The models of some samples and of random subsets of these; each is fitted once, for the largest number."""

    rows: Array
    subsets: list[Array]  # of positions among the rows
    found: dict[str, list[_Scores | None]]  # by model: of all rows, then of each subset; None if it cannot be fitted
    errors: dict[str, str]  # by model, if it cannot be fitted on all rows

    @classmethod
    def run(cls, views: Views, numbers: Sequence[int], seed: int, n_jobs: int | None, progress: Progress) -> Search:
        """Fit all models on all rows and subsets, in parallel."""
        rng = np.random.default_rng(seed)
        rows = draw_rows(views.n_samples, max(_SAMPLES, _SAMPLES_PER_CLUSTER * max(numbers)), rng)
        some = views.take(rows)
        varying = [name for name in some if varies(some.observed(name))]
        if not varying:
            raise InputError(f"all views are constant among {len(rows)} samples that are drawn at random")
        some = some.select(varying)
        known = np.flatnonzero(some.has_any())
        if len(known) < len(rows):
            rows, some = rows[known], some.take(known)
        n = len(rows)
        n_subsets = (
            int(np.clip(round(_SUBSETS_TIMES_SAMPLES / n), _SUBSETS, _MOST_SUBSETS)) if n >= _LEAST_SAMPLES else 0
        )
        subsets = [np.sort(rng.permutation(n)[: int(_FRACTION * n)]) for _ in range(n_subsets)]
        n_components = number_of_components(max(numbers), min(map(len, [rows, *subsets])))
        models = models_of(some, n_components, assigner=OneCluster(), n_jobs=1, random_state=seed)
        final = models_of(views, 1)  # all samples may need more memory, or have another profile
        models = {name: model for name, model in models.items() if name in final}
        tasks = [(model, part) for part in [np.arange(n), *subsets] for model in models.values()]
        done, lock = count(1), Lock()

        def fit(task: tuple[Any, Array]) -> _Scores | InputError:
            model, part = task
            found = _fitted(clone(model), some.take(part))
            with lock:  # reports come from several threads
                progress(f"models of {n} samples", next(done), len(tasks))
            return found

        with config_context(transform_output="default"), Workers(n_jobs) as workers:
            results = workers.map(fit, tasks)
        by_model = {name: results[i :: len(models)] for i, name in enumerate(models)}
        errors = {name: str(each[0]) for name, each in by_model.items() if isinstance(each[0], InputError)}
        if len(errors) == len(models):
            raise InputError(f"none of {len(models)} models can cluster these views: {next(iter(errors.values()))}")
        found = {
            name: [each if isinstance(each, _Scores) else None for each in results]
            for name, results in by_model.items()
            if name not in errors
        }
        return cls(rows, subsets, found, errors)

    def evaluate(self, numbers: Sequence[int]) -> SearchResult:
        """Return the measures for each number of clusters, and select one."""
        by_number, labels = zip(*(self._evaluated(k) for k in numbers), strict=True)
        measures = [
            np.array([getattr(each[-1], name) or 0.0 for each in by_number])
            for name in ("stability", "model_agreement", "size_entropy", "eigengap")
        ]
        if any(each[-1].eigengap is None for each in by_number):  # too few components for the larger numbers
            measures[-1] = np.zeros(len(numbers))
        values = criterion(np.array(numbers), *measures)
        # The criterion is linear in the stability, so this is its standard deviation over the subsets.
        spreads = np.array([each[-1].stability_spread or 0.0 for each in by_number])
        spreads = criterion(np.array(numbers), measures[0] + spreads, *measures[1:]) - values
        evaluations = [
            self._with_criterion(each, float(value), float(spread)) if each.model == CONSENSUS else each
            for some, value, spread in zip(by_number, values, spreads, strict=True)
            for each in some
        ]
        selected = sum(len(some) for some in by_number[: int(values.argmax()) + 1]) - 1
        weights = _known_weights(by_number[int(values.argmax())])
        by_consensus = {k: tuple(each.tolist()) for k, each in zip(numbers, labels, strict=True)}
        return SearchResult(tuple(evaluations), selected, weights, by_consensus)

    @staticmethod
    def _with_criterion(evaluated: EvaluatedModel, value: float, spread: float) -> EvaluatedModel:
        known = evaluated.stability_spread is not None
        return replace(evaluated, criterion=value, criterion_spread=spread if known else None)

    def labels(self, evaluations: Sequence[EvaluatedModel], n_clusters: int) -> Labels:
        """Return the labels of the consensus for one of the evaluated numbers of clusters, of all rows."""
        labels = self._consensus(0, _known_weights(evaluated_models(evaluations, n_clusters)), n_clusters)
        assert labels is not None
        return labels

    def _evaluated(self, k: int) -> tuple[list[EvaluatedModel], Labels]:
        """Return the evaluations of all models and of their consensus for one number of clusters, and its labels."""
        n = len(self.rows)
        labels = {name: [each and each.labels(k) for each in parts] for name, parts in self.found.items()}
        stability = {name: self._stability(parts) for name, parts in labels.items()}
        weights = dict(zip(labels, model_weights([_mean(each) for each in stability.values()]), strict=True))
        whole: dict[str, Labels] = {name: parts[0] for name, parts in labels.items() if parts[0] is not None}
        agreements = mean_agreements(list(whole.values())) if len(whole) > 1 else [None]
        evaluated = [EvaluatedModel(name, n, k, error=error) for name, error in self.errors.items()]
        gaps = []
        for name, agreement in zip(whole, agreements, strict=True):
            first = self.found[name][0]
            assert first is not None
            gaps.append(_gap(first.eigenvalues, k))
            evaluated.append(
                EvaluatedModel(
                    name,
                    n,
                    k,
                    stability=_mean(stability[name]),
                    stability_spread=_spread(stability[name]),
                    model_agreement=None if agreement is None else float(agreement),
                    size_entropy=size_entropy(whole[name], k),
                    eigengap=gaps[-1],
                    weight=weights[name],
                )
            )
        known_gaps = [gap for gap in gaps if gap is not None]
        together = [self._consensus(part, weights, k) for part in range(len(self.subsets) + 1)]
        assert together[0] is not None
        stability_together = self._stability(together)
        evaluated.append(
            EvaluatedModel(
                CONSENSUS,
                n,
                k,
                stability=_mean(stability_together),
                stability_spread=_spread(stability_together),
                model_agreement=float(np.mean([a for a in agreements if a is not None])) if len(whole) > 1 else None,
                size_entropy=size_entropy(together[0], k),
                eigengap=float(np.mean(known_gaps)) if len(known_gaps) == len(gaps) else None,
            )
        )
        return evaluated, together[0]

    def _stability(self, parts: Sequence[Labels | None]) -> list[float]:
        """Return the agreement of the labels of all rows with those of each subset."""
        whole, *others = parts
        assert whole is not None
        known = [(rows, part) for rows, part in zip(self.subsets, others, strict=True) if part is not None]
        return [adjusted_rand(whole[rows], part) for rows, part in known]

    def _consensus(self, part: int, weights: Mapping[str, float], k: int) -> Labels | None:
        """Return the labels of the consensus, as `Consensus` finds them, in all rows or in a subset."""
        known = [(weights[name], parts[part]) for name, parts in self.found.items()]
        scores = [np.sqrt(weight) * l2_normalize(each.scores[:, :k]) for weight, each in known if each is not None]
        return _labels(np.hstack(scores), k) if scores else None


def _fitted(model: Any, views: Views) -> _Scores | InputError:
    """Return the scores of a model of these samples, or why it cannot be fitted."""
    try:
        # The measures include what warnings would report: close eigenvalues, and fewer clusters in a subset.
        with part_of_fit(kept=False):
            *_, method = nested_models(model.fit(views))
    except InputError as error:
        return error
    return _Scores(method.scores_ * diffusion_weights(method, method.scores_), method.eigenvalues_)


def _labels(scores: Array, k: int) -> Labels:
    return FEW_STARTS.fit(scores, k, np.random.default_rng(0)).assign(scores)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _spread(values: Sequence[float]) -> float | None:
    """Return the standard deviation, if there are at least two values."""
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _known_weights(evaluated: Sequence[EvaluatedModel]) -> dict[str, float]:
    """Return the weights of the models that can be fitted, from evaluations for one number of clusters."""
    return {each.model: each.weight for each in evaluated if each.weight is not None}


def _gap(eigenvalues: Array, k: int) -> float | None:
    return float(eigenvalues[k - 2] - eigenvalues[k - 1]) if len(eigenvalues) >= k else None
