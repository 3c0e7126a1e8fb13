"""Trials of candidates: each is fitted on a sample and on halves of it, which label each other's rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import compress

import numpy as np
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning

from coview.core.agreement import adjusted_rand, size_entropy
from coview.core.assign import Assignment, Directions, Labels
from coview.errors import InputError
from coview.kernels import Kernel
from coview.methods.tmvkscr import TMvKSCR
from coview.preprocess.profile import varies
from coview.preprocess.steps import parse_steps
from coview.tune.candidates import Candidate
from coview.tune.criterion import Evidence, line_fit, membership_strength
from coview.views import Array, Matrix, Views

_FEWEST = 8  # samples, in whose halves there is something to be seen
_ASSIGNER = Directions(n_init=3)  # labels are compared many times over: one bad start in many does not decide
_KEPT_BYTES = 2**29  # of Gram matrices; the blocks of new rows beside them are as large


@dataclass(frozen=True)
class Blocks:
    """Gram matrices of a training set, and the similarities of other rows with it, by view."""

    grams: Mapping[str, Array]
    new: Mapping[str, Array]

    @property
    def n_samples(self) -> int:
        return len(next(iter(self.grams.values())))


class Trials:
    """Candidates fitted on the same samples and the same halves of them; Gram matrices are made once.

    Parameters
    ----------
    views : Views
        The samples, few enough for dense Gram matrices.
    n_splits : int
        How often the samples are cut into halves.
    seed : int

    A view that is the same in all of these samples is left out: it says nothing here, though it may among more.
    """

    def __init__(self, views: Views, n_splits: int, seed: int) -> None:
        self._views = views
        self._varying = [varies(x) for x in views.values()]
        self._seed = seed
        rng, n = np.random.default_rng(seed), views.n_samples
        orders = [rng.permutation(n) for _ in range(n_splits)]
        if n < _FEWEST:
            orders = []
        halves = [(np.sort(order[: n // 2]), np.sort(order[n // 2 :])) for order in orders]
        self._parts = [(np.arange(n), None), *(part for a, b in halves for part in ((a, b), (b, a)))]
        self._prepared: dict[tuple[str, str], Matrix] = {}
        self._blocks: dict[tuple[str, str, Kernel], list[tuple[Array, Array | None]]] = {}

    @property
    def n_samples(self) -> int:
        return self._views.n_samples

    def evidence(self, candidate: Candidate, cluster_numbers: Sequence[int]) -> list[Evidence]:
        """Fit one candidate, and return what speaks for it for each number of clusters."""
        with warnings.catch_warnings(), config_context(transform_output="default"):
            # That the next eigenvalue is near, or that a half holds fewer clusters, speaks for itself in the evidence.
            warnings.simplefilter("ignore", ConvergenceWarning)
            return self._evidence(candidate, cluster_numbers)

    def _evidence(self, candidate: Candidate, cluster_numbers: Sequence[int]) -> list[Evidence]:
        if not any(self._varying):
            raise InputError(f"all views are the same in each of {self.n_samples} samples, drawn at random")
        most = min(max(cluster_numbers) + 1, self.n_samples)  # one component more, for the gap behind the last
        whole, *parts = self._gather(candidate)
        model = self._fitted(candidate, whole.grams, most)
        of_views = list(model.transform(whole.grams, per_view=True).values())
        halves = [
            _Half(self._fitted(candidate, part.grams, min(most, part.n_samples)), part, self._seed) for part in parts
        ]
        found = []
        for k in cluster_numbers:
            labels = _labels(model.scores_, k, self._seed)
            agreement = [adjusted_rand(labels, _labels(scores, k, self._seed)) for scores in of_views]
            learnt = [half.learn(k) for half in halves]
            pairs = zip(learnt[::2], learnt[1::2], strict=True)
            stability = [adjusted_rand(a.labels, b.new_labels) for pair in pairs for a, b in (pair, pair[::-1])]
            found.append(
                Evidence(
                    candidate,
                    k,
                    labels,
                    stability=_mean(stability),
                    agreement=_mean(agreement),
                    size_entropy=size_entropy(labels, k),
                    line_fit=_mean([half.line_fit for half in learnt]),
                    membership=_mean([half.membership for half in learnt]),
                    eigengap=_gap(model.eigenvalues_, k),
                )
            )
        return found

    def _fitted(self, candidate: Candidate, grams: Mapping[str, Array], n_clusters: int) -> TMvKSCR:
        kappa = list(compress(candidate.kappa, self._varying))
        model = TMvKSCR(
            n_clusters,
            kernel="precomputed",
            rho=candidate.rho,
            kappa=kappa if any(kappa) else None,
            assigner=Directions(n_init=1),
            random_state=self._seed,
        )
        return model.fit(grams)

    def _gather(self, candidate: Candidate) -> list[Blocks]:
        by_view = {
            name: self._view_blocks(name, how, candidate.kernel)
            for name, how in compress(zip(self._views, candidate.steps, strict=True), self._varying)
        }
        return [
            Blocks(
                {name: blocks[i][0] for name, blocks in by_view.items()},
                {name: new for name, blocks in by_view.items() if (new := blocks[i][1]) is not None},
            )
            for i in range(len(self._parts))
        ]

    def _view_blocks(self, name: str, how: str, kernel: Kernel) -> list[tuple[Array, Array | None]]:
        """Gram matrices of all parts of a view, from memory where candidates share them."""
        key = (name, how, kernel)
        if key not in self._blocks:
            if sum(gram.nbytes for blocks in self._blocks.values() for gram, _ in blocks) > _KEPT_BYTES:
                self._blocks.clear()
            if (name, how) not in self._prepared:
                x = self._views[name]
                self._prepared[name, how] = parse_steps(how).learn(x, name)(x, name)
            x = self._prepared[name, how]
            kernel.check_training(name, x)
            resolved = kernel.resolve(x, np.random.default_rng(self._seed), name)
            self._blocks[key] = [_similarities(resolved, x, *part) for part in self._parts]
        return self._blocks[key]


def _similarities(kernel: Kernel, x: Matrix, train: Array, new: Array | None) -> tuple[Array, Array | None]:
    similarity = kernel.against(x[train])
    every = slice(0, len(train))
    gram = np.empty((len(train), len(train)))
    similarity.tile(every, every, out=gram)
    return gram, None if new is None else similarity(x[new])


def _mean(values: Sequence[float]) -> float:
    """The mean; 0 where samples were too few to cut into halves, which then says nothing for any candidate."""
    return float(np.mean(values)) if len(values) else 0.0


def _gap(eigenvalues: Array, k: int) -> float:
    return float(eigenvalues[k - 2] - eigenvalues[k - 1]) if len(eigenvalues) >= k else 0.0


def _assignment(scores: Array, k: int, seed: int) -> Assignment:
    return _ASSIGNER.fit(scores[:, : k - 1], k, np.random.default_rng(seed))


def _labels(scores: Array, k: int, seed: int) -> Labels:
    return _assignment(scores, k, seed).assign(scores[:, : k - 1])


@dataclass(frozen=True)
class _Learnt:
    """Labels of one half by its own model, those that it gives the other half, and what they look like there."""

    labels: Labels
    new_labels: Labels
    line_fit: float
    membership: float


class _Half:
    """A model of one half of the samples, and the scores of the other half."""

    def __init__(self, model: TMvKSCR, part: Blocks, seed: int) -> None:
        self._scores = model.scores_
        self._new_scores = model.transform(part.new)
        self._degrees = np.mean([block.mean(axis=1) for block in part.new.values()], axis=0)
        self._seed = seed

    def learn(self, k: int) -> _Learnt:
        scores, new_scores = self._scores[:, : k - 1], self._new_scores[:, : k - 1]
        assignment = _assignment(scores, k, self._seed)
        labels, new_labels = assignment.assign(scores), assignment.assign(new_scores)
        centres = np.stack([scores[labels == cluster].mean(axis=0) for cluster in range(assignment.n_found)])
        return _Learnt(
            labels,
            new_labels,
            line_fit(new_scores, new_labels, self._degrees),
            membership_strength(new_scores, new_labels, centres),
        )
