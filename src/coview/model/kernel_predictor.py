"""KernelPredictor: what a kernel method learns, with which new samples are scored and labelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from coview.core.assign import Assignment, Deferred, Labels, label_and_tie, new_numbers, reordered
from coview.core.contributions import decision_margins, first_and_second, normalised_parts
from coview.core.novelty import joint_quantiles, quantiles
from coview.core.score import ScoreMap, divided, divisors_of, ensemble_scores, loadings_of, zero_within
from coview.data.rows import evenly_spaced
from coview.data.view import Array, Matrix, among_all
from coview.data.views import Views
from coview.errors import InputError
from coview.model.model import Renumbered, Scorer, in_blocks

_BLOCK_BYTES = 2**21
_FEWEST_ROWS = 256  # that are scored in float32; for fewer the copy of the training rows is not worth while
_TRIAL_ROWS = 256  # scored in float32 to see whether this helps, if there are many more rows
_TRIAL_PART = 8
_MOST_LEFT = 0.25  # fraction of rows that need float64 beyond which all rows are scored in float64
_ROWS_AGAIN = 8192
_MOST_REFERENCE = 1000  # training samples with each view, whose closeness new samples are compared with
FEWEST_COMPLETE = 5  # training samples with all views, from which the loadings of the views are computed
MOST_COMPLETE = 256  # of these, because the scores of each view take long with dense kernels

Score: TypeAlias = Callable[[Matrix], tuple[Array, Array]]  # of rows of one view; with errors


@dataclass(frozen=True)
class KernelPredictor(Scorer):
    """Scores of each view by its similarities to the training samples, and clusters by the weighted sum of scores."""

    score_maps: Mapping[str, ScoreMap]
    beta: Mapping[str, float]
    assignment: Assignment
    of_view: Deferred  # how the clusters of a single view are learnt
    n_training: int
    # Of views that some training samples lack: the rows of the others, which have scores.
    present_rows: Mapping[str, Array]
    # Of views whose similarities among the training samples are not kept.
    view_scores: Mapping[str, Array]
    closeness: Mapping[str, Array]  # of the training samples in `_reference_rows`
    view_loadings: Mapping[str, float]  # empty if no training sample lacks a view
    view_assignments: Mapping[str, Assignment] = field(default_factory=dict)  # learnt by `reclustered`
    batch_size: Any = "auto"
    n_jobs: int | None = None
    in_float32: bool = True  # whether rows are first scored in float32

    @property
    def n_clusters(self) -> int:
        return self.assignment.n_found

    @property
    def n_components(self) -> int:
        return len(next(iter(self.score_maps.values())).bias)

    # -- scores

    def scores(self, views: Views) -> Array:
        return self._by_block(self._ensemble, views)

    def scores_by_view(self, views: Views) -> dict[str, Array]:
        """Return each view's own scores; NaN for samples that lack the view."""
        return self._scores_of(views)[1]

    def _ensemble(self, views: Views) -> Array:
        return self._block_scores(views, with_views=False)[:, 0]

    def _scores_of(self, views: Views) -> tuple[Array, dict[str, Array]]:
        """Return the ensemble scores and each view's own scores."""
        ensemble, *of_views = np.ascontiguousarray(np.moveaxis(self._by_block(self._block_scores, views), 1, 0))
        return ensemble, dict(zip(views, of_views, strict=True))

    def _block_scores(self, views: Views, with_views: bool = True) -> Array:
        """Return the ensemble scores of a block, followed by each view's own, (rows, 1 + views, components)."""
        scores = np.zeros((views.n_samples, 1 + len(views) * with_views, self.n_components))
        of_views = self._scored({name: self.score_maps[name].with_tolerance for name in views}, views)
        for v, (name, (of_view, tolerance)) in enumerate(of_views.items(), start=1):
            self._require_finite(name, of_view)
            if with_views:
                if name in views.present:
                    scores[:, v] = np.nan
                scores[views.present.get(name, slice(None)), v] = zero_within(of_view.copy(), tolerance)
        scores[:, 0] = zero_within(*self._combined(views, of_views))
        return scores

    def _scored(self, score: Mapping[str, Score], views: Views) -> dict[str, tuple[Array, Array]]:
        """Return the scores of the samples that have each view, and their errors."""
        nothing = np.empty((0, self.n_components)), np.zeros(self.n_components)
        return {name: score[name](views.observed(name)) if views.n_present(name) else nothing for name in views}

    def _combined(self, views: Views, of_views: Mapping[str, tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return the ensemble scores and their rounding errors, from those of the samples that have each view."""
        found = ensemble_scores(views, of_views, self.beta, self.n_components)
        return divided(*found, self._divisors(views))

    def _divisors(self, views: Views) -> Array | None:
        return None if views.complete else divisors_of(views, self.beta, self._loadings)

    @cached_property
    def _loadings(self) -> Mapping[str, float]:
        """The loadings of the views; a model of complete data computes them when samples first lack views."""
        if self.view_loadings:
            return self.view_loadings
        rows = evenly_spaced(self.n_training, MOST_COMPLETE)
        enough = len(rows) >= FEWEST_COMPLETE
        some = {name: self._scores_with_view(name)[rows] for name in self.score_maps} if enough else {}
        return loadings_of(some, self.beta)

    def _scores_with_view(self, name: str) -> Array:
        """Return a view's own scores of the training samples that have it, computed when they are first used."""
        known: dict[str, Array] = self._computed_scores
        if name not in known:
            score_map = self.score_maps[name]
            known[name] = zero_within(score_map.of_training_samples(), score_map.tolerance)
        self._require_finite(name, known[name])
        return known[name]

    @cached_property
    def _computed_scores(self) -> dict[str, Array]:
        return dict(self.view_scores)

    def training_scores(self, name: str) -> Array:
        """Return a view's own scores of the training samples; NaN for samples that lack it."""
        scores = self._scores_with_view(name)
        if name not in self.present_rows:
            return scores
        mask = np.zeros(self.n_training, dtype=bool)
        mask[self.present_rows[name]] = True
        return among_all(scores, mask)

    def _require_finite(self, name: str, scores: Array) -> None:
        if not np.isfinite(scores).all():
            kernel = getattr(self.score_maps[name].similarity, "kernel", "its kernel")
            raise InputError(f"view {name!r} has similarities too large to compute with under {kernel}; scale the view")

    # -- clusters

    def labels(self, views: Views) -> Labels:
        return self._by_nearness(lambda nearness: nearness.argmax(axis=1), views)

    def labels_and_ties(self, views: Views) -> Labels:
        return self._by_nearness(label_and_tie, views)

    def membership(self, views: Views) -> Array:
        return self._by_nearness(self.assignment.softmax, views)

    def labels_of_scores(self, scores: Array) -> Labels:
        """Return the clusters of ensemble scores."""
        return self.assignment.assign(scores)

    def labels_by_view(self, views: Views) -> dict[str, Labels]:
        return {name: self._labels_of_view(name, e) for name, e in self.scores_by_view(views).items()}

    def training_labels_by_view(self) -> dict[str, Labels]:
        """Return the labels of the training samples by each view alone."""
        return {name: self._labels_of_view(name, self.training_scores(name)) for name in self.score_maps}

    def _labels_of_view(self, name: str, scores: Array) -> Labels:
        """Return the labels by a view's own scores; -1 for scores that are NaN."""
        present = _is_known(scores)
        labels = np.full(len(scores), -1)
        if present.any():
            labels[present] = self._assignment_of_view(name).assign(scores[present])
        return labels

    def _assignment_of_view(self, name: str) -> Assignment:
        """Return a view's own clusters, learnt when they are first used."""
        known: dict[str, Assignment] = self._learnt_assignments
        if name not in known:
            scores = self.training_scores(name)
            known[name] = self.of_view.fit(scores[_is_known(scores)])
        return known[name]

    @cached_property
    def _learnt_assignments(self) -> dict[str, Assignment]:
        return dict(self.view_assignments)

    def fewer_clusters(self, scores: Array, n_clusters: int) -> Labels:
        """Return the labels of these scores for fewer clusters, from the components that are used for that number."""
        n_dropped = self.of_view.n_clusters - n_clusters
        used = scores[:, : max(1, scores.shape[1] - n_dropped)]
        return replace(self.of_view, n_clusters=n_clusters).fit(used).assign(used)

    def renumbered(self, order: Labels, labels: Labels, learnt: Mapping[str, Any]) -> Renumbered:
        order, numbers = new_numbers(order, self.n_clusters)
        changed = replace(self, assignment=reordered(self.assignment, order))
        nearest, tied = label_and_tie(changed.assignment.nearness(learnt["scores_"])).T
        return Renumbered(changed, np.where(tied, nearest, numbers[labels]))

    def reclustered(self, views: Views, rng: np.random.Generator) -> tuple[KernelPredictor, Labels]:
        """Return the predictor with clusters that are learnt from these samples, and `labels_and_ties` of them."""
        learn = self.of_view
        scores, of_views = self._scores_of(views)
        assignment = learn.assigner.fit(scores, learn.n_clusters, rng, learn.decimals)
        known = {name: of_view[_is_known(of_view)] for name, of_view in of_views.items()}
        # If no sample has a view, its clusters stay as they are.
        learnt = {name: learn.fit(of_view) for name, of_view in known.items() if len(of_view)}
        changed = replace(self, assignment=assignment, view_assignments={**self.view_assignments, **learnt})
        return changed, label_and_tie(assignment.nearness(scores))

    def contributions(self, views: Views) -> dict[str, Array]:
        scores, of_views = self._scores_of(views)
        divisors: Any = 1.0 if views.complete else self._divisors(views)
        parts = {name: self.beta[name] * of_view / divisors for name, of_view in of_views.items()}
        clusters = first_and_second(self.assignment, scores)
        return decision_margins(normalised_parts(parts, scores), self.beta, self.assignment.centres, *clusters)

    # -- novelty

    def usualness(self, views: Views) -> dict[str, Array]:
        known = {name: self._reference_closeness(name) for name in views}  # before there are threads
        closeness = self._by_block(self._block_closeness, views)
        tolerances = {name: self.score_maps[name].similarity.closeness_tolerance for name in views}
        return {name: quantiles(closeness[:, v], known[name], tolerances[name]) for v, name in enumerate(views)}

    def joint_usualness(self, of_views: Mapping[str, Array]) -> Array:
        rows, reference = self._reference_rows, {}
        for name in of_views:
            known, tolerance = self._reference_closeness(name), self.score_maps[name].similarity.closeness_tolerance
            has_view = np.isin(rows, self.present_rows.get(name, rows))
            reference[name] = among_all(quantiles(known, known, tolerance)[:, None], has_view)[:, 0]
        return joint_quantiles(of_views, reference)

    def _block_closeness(self, views: Views) -> Array:
        """Return how close the samples of a block are to the training samples in each view, (rows, views)."""
        closeness = np.full((views.n_samples, len(views)), np.nan)
        for v, name in enumerate(views):
            if views.n_present(name):
                rows = views.present.get(name, slice(None))
                closeness[rows, v] = self.score_maps[name].similarity.closeness(views.observed(name))
        return closeness

    def _reference_closeness(self, name: str) -> Array:
        """Return the closeness of the training samples that new samples are compared with in a view."""
        known: dict[str, Array] = self._computed_closeness
        if name not in known:
            known[name] = self.score_maps[name].similarity.training_closeness(self._reference_rows_with(name))
        return known[name]

    @cached_property
    def _computed_closeness(self) -> dict[str, Array]:
        return dict(self.closeness)

    @property
    def _reference_rows(self) -> Array:
        return reference_rows(self.n_training, self.present_rows, self.score_maps)

    def _reference_rows_with(self, name: str) -> Array:
        return rows_with_view(self._reference_rows, self.present_rows, name)

    # -- blocks of rows

    def _by_block(self, function: Callable[[Views], Array], views: Views) -> Array:
        n_rows = self.batch_size
        if n_rows == "auto":
            maps = [self.score_maps[name] for name in views]
            widest = max((each.n_training for each in maps if not each.similarity.sparse), default=0)
            n_rows = min(max(_BLOCK_BYTES // (4 * max(widest, 1)), 64), 8192)
        return in_blocks(function, views, n_rows, self.n_jobs)

    def _by_nearness(self, function: Callable[[Array], Array], views: Views) -> Array:
        """Return a function of the nearness of all rows to the clusters; its values must not be negative.

        Many rows are first scored in float32. Rows whose cluster could be another one in float64 are scored again in
        float64.
        """
        n = views.n_samples
        score = self._scores_in_float32 if n >= _FEWEST_ROWS else {}
        if not score:
            return self._by_exact_nearness(function, views)

        def screen(block: Views) -> Array:
            scores, errors = self._combined(block, self._scored(score, block))
            nearness = self.assignment.nearness(scores)
            certain = self.assignment.is_certain(nearness, scores, np.broadcast_to(errors, scores.shape)[:, 0])
            found = function(nearness)
            found[~certain] = -1  # to be computed again
            return found

        def rows_left(found: Array) -> Array:
            return np.flatnonzero(found.reshape(len(found), -1)[:, 0] < 0)

        if n > _TRIAL_PART * _TRIAL_ROWS:
            some = views.take(evenly_spaced(n, _TRIAL_ROWS))
            if len(rows_left(self._by_block(screen, some))) > _TRIAL_ROWS * _MOST_LEFT:
                return self._by_exact_nearness(function, views)
        found = self._by_block(screen, views)
        left = rows_left(found)
        for start in range(0, len(left), _ROWS_AGAIN):  # a copy of all rows may not fit into memory
            rows = left[start : start + _ROWS_AGAIN]
            found[rows] = self._by_exact_nearness(function, views.take(rows))
        return found

    def _by_exact_nearness(self, function: Callable[[Array], Array], views: Views) -> Array:
        return self._by_block(lambda block: function(self.assignment.nearness(self._ensemble(block))), views)

    @cached_property
    def _scores_in_float32(self) -> dict[str, Score]:
        """The function of rows of each view that returns their scores and errors; empty if all are float64."""
        narrow = {name: each.in_float32() for name, each in self.score_maps.items()} if self.in_float32 else {}
        if not any(narrow.values()):
            return {}
        return {name: each or self.score_maps[name].with_bound for name, each in narrow.items()}


def reference_rows(n_training: int, present_rows: Mapping[str, Array], names: Mapping[str, Any]) -> Array:
    """Return the numbers of the training samples whose closeness new samples are compared with.

    Rows are evenly spaced. If some samples lack views, they are evenly spaced within each view.
    """
    having = [present_rows.get(name, np.arange(n_training)) for name in names]
    return np.unique(np.concatenate([rows[evenly_spaced(len(rows), _MOST_REFERENCE)] for rows in having]))


def rows_with_view(rows: Array, present_rows: Mapping[str, Array], name: str) -> Array:
    """Return the numbers of those of the rows that have a view, among the samples that have it."""
    return np.flatnonzero(np.isin(present_rows[name], rows)) if name in present_rows else rows


def _is_known(scores: Array) -> Array:
    """Return which samples have the view of these scores."""
    return np.logical_not(np.isnan(scores).any(axis=1))
