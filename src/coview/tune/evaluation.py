"""Evaluation of candidates: each is fitted on samples and on halves of them, which label each other's rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from coview.core.agreement import adjusted_rand, size_entropy
from coview.core.assign import FEW_STARTS, Assignment, Directions, Labels
from coview.errors import InputError
from coview.kernels import Kernel
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.profile import varies
from coview.preprocess.steps import parse_steps
from coview.tune.candidates import Candidate
from coview.tune.criterion import Evaluation, line_fit, membership_strength
from coview.tune.record import EvaluatedSetting
from coview.views import Array, Matrix, Views, as_views

_LEAST_SAMPLES = 8  # halves of fewer samples are not informative
_KEPT_BYTES = 2**29  # of Gram matrices; the similarities of the other halves take as much again


class Evaluator:
    """Candidates fitted on the same samples and `n_splits` times on halves of them; Gram matrices are computed once.

    The samples are few enough for dense Gram matrices. A view that is constant among them is left out, because it is
    not informative here. `number` is that of the round, for the records.
    """

    def __init__(self, views: Views, n_splits: int, seed: int, number: int = 1) -> None:
        self.n_samples = views.n_samples
        self._views = views
        self._varying = [varies(x) for x in views.values()]
        self._seed = seed
        self._number = number
        rng, n = np.random.default_rng(seed), views.n_samples
        orders = [rng.permutation(n) for _ in range(n_splits)] if n >= _LEAST_SAMPLES else []
        halves = [(np.sort(order[: n // 2]), np.sort(order[n // 2 :])) for order in orders]
        self._parts = [(np.arange(n), None), *(part for a, b in halves for part in ((a, b), (b, a)))]
        self._preprocessed: dict[tuple[str, str], Matrix] = {}
        self._blocks: dict[tuple[str, str, Kernel], list[tuple[Array, Array | None]]] = {}

    def record(self, candidate: Candidate, n_clusters: int, **values: Any) -> EvaluatedSetting:
        """Return the record of a candidate with these measures, or with an error."""
        setting = candidate.steps, str(candidate.kernel), candidate.rho, candidate.kappa
        return EvaluatedSetting(self._number, self.n_samples, *setting, n_clusters, **values)

    def evaluate(self, candidate: Candidate, numbers: Sequence[int]) -> list[Evaluation]:
        """Fit a candidate, and return its evaluation for each number of clusters."""
        with warnings.catch_warnings(), config_context(transform_output="default"):
            # The measures include what these warnings report: close eigenvalues, and fewer clusters in a half.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._evaluate(candidate, numbers)

    def _evaluate(self, candidate: Candidate, numbers: Sequence[int]) -> list[Evaluation]:
        if not any(self._varying):
            raise InputError(f"all views are constant among {self.n_samples} samples that are drawn at random")
        most = max(numbers) + 1  # one component more, for the last eigengap
        (whole, _), *parts = self._gather(candidate)
        model = self._fitted(candidate, whole, most)
        of_views = list(model.transform(whole, per_view=True).values())
        halves = [_Half.of(self._fitted(candidate, grams, most), new) for grams, new in parts]
        evaluations = []
        for k in numbers:
            labels = _labels(model.scores_, k, self._seed)
            learnt = [half.learn(k, self._seed) for half in halves]
            pairs = [pair for a, b in zip(learnt[::2], learnt[1::2], strict=True) for pair in ((a, b), (b, a))]
            record = self.record(
                candidate,
                k,
                stability=_mean([adjusted_rand(a.labels, b.new_labels) for a, b in pairs]),
                agreement=_mean([adjusted_rand(labels, _labels(scores, k, self._seed)) for scores in of_views]),
                size_entropy=size_entropy(labels, k),
                line_fit=_mean([half.line_fit for half in learnt]),
                membership=_mean([half.membership for half in learnt]),
                eigengap=_gap(model.eigenvalues_, k),
            )
            evaluations.append(Evaluation(candidate, labels, record))
        return evaluations

    def _fitted(self, candidate: Candidate, grams: Mapping[str, Array], n_clusters: int) -> TMvKSCR:
        kappa = list(compress(candidate.kappa, self._varying))
        model = TMvKSCR(
            min(n_clusters, *map(len, grams.values())),
            kernel="precomputed",
            rho=candidate.rho,
            kappa=kappa if any(kappa) else None,
            assigner=Directions(n_init=1),
            random_state=self._seed,
        )
        return model.fit(as_views(grams))  # Gram matrices are not the caller's data, of which fit warns

    def _gather(self, candidate: Candidate) -> list[tuple[dict[str, Array], dict[str, Array]]]:
        """Return the Gram matrices of each training set, and the similarities of new samples to it, by view."""
        by_view = {
            name: self._view_blocks(name, steps, candidate.kernel)
            for name, steps in compress(zip(self._views, candidate.steps, strict=True), self._varying)
        }
        return [
            (
                {name: blocks[i][0] for name, blocks in by_view.items()},
                {name: new for name, blocks in by_view.items() if (new := blocks[i][1]) is not None},
            )
            for i in range(len(self._parts))
        ]

    def _view_blocks(self, name: str, steps: str, kernel: Kernel) -> list[tuple[Array, Array | None]]:
        """Return the Gram matrices of all parts of a view, which candidates with the same kernel share."""
        key = (name, steps, kernel)
        if key not in self._blocks:
            if sum(gram.nbytes for blocks in self._blocks.values() for gram, _ in blocks) > _KEPT_BYTES:
                self._blocks.clear()
            if (name, steps) not in self._preprocessed:
                x = self._views[name]
                self._preprocessed[name, steps] = parse_steps(steps).learn(x, name)(x, name)
            x = self._preprocessed[name, steps]
            kernel.check_training(name, x)
            resolved = kernel.resolve(x, np.random.default_rng(self._seed), name)
            self._blocks[key] = [_similarity_blocks(resolved, x, *part) for part in self._parts]
        return self._blocks[key]


def _similarity_blocks(kernel: Kernel, x: Matrix, train: Array, new: Array | None) -> tuple[Array, Array | None]:
    similarity = kernel.against(x[train])
    every = slice(0, len(train))
    gram = np.empty((len(train), len(train)))
    similarity.tile(every, every, out=gram)
    return gram, None if new is None else similarity(x[new])


def _mean(values: Sequence[float]) -> float:
    """Return the mean; 0 for all candidates if the samples are too few to be split into halves."""
    return float(np.mean(values)) if len(values) else 0.0


def _gap(eigenvalues: Array, k: int) -> float:
    return float(eigenvalues[k - 2] - eigenvalues[k - 1]) if len(eigenvalues) >= k else 0.0


def _fitted_assignment(scores: Array, k: int, seed: int) -> Assignment:
    return FEW_STARTS.fit(scores[:, : k - 1], k, np.random.default_rng(seed))


def _labels(scores: Array, k: int, seed: int) -> Labels:
    return _fitted_assignment(scores, k, seed).assign(scores[:, : k - 1])


class _HalfLabels(NamedTuple):
    """Labels of one half by its own model, its labels for the other half, and measures of the latter."""

    labels: Labels
    new_labels: Labels
    line_fit: float
    membership: float


class _Half(NamedTuple):
    """Scores of one half of the samples by its model, and scores and mean similarities of the other half."""

    scores: Array
    new_scores: Array
    degrees: Array

    @classmethod
    def of(cls, model: TMvKSCR, new: Mapping[str, Array]) -> _Half:
        degrees = np.mean([similarities.mean(axis=1) for similarities in new.values()], axis=0)
        return cls(model.scores_, model.transform(new), degrees)

    def learn(self, k: int, seed: int) -> _HalfLabels:
        scores, new_scores = self.scores[:, : k - 1], self.new_scores[:, : k - 1]
        assignment = _fitted_assignment(scores, k, seed)
        labels, new_labels = assignment.assign(scores), assignment.assign(new_scores)
        centres = np.stack([scores[labels == cluster].mean(axis=0) for cluster in range(assignment.n_found)])
        return _HalfLabels(
            labels,
            new_labels,
            line_fit(new_scores, new_labels, self.degrees),
            membership_strength(new_scores, new_labels, centres),
        )
