"""The clustering that a summary describes: samples, their labels and scores, and what the views yield alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from coview.core.assign import Labels
from coview.core.drawn import draw_by_cluster
from coview.data.rows import narrowed
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError
from coview.model.model import Model
from coview.summary.margins import Numbers, Separation, separation

DRAWN = 5000


@dataclass(frozen=True)
class Clustering:
    """The clusters of validated samples by a fitted model, numbered by the place of their label among those found."""

    model: Model
    views: Views
    labels: Labels
    of_training: bool
    method: Any = None  # inside wrappers, as it was given
    samples: tuple[str, ...] = ()  # their names
    classes: tuple[str, ...] | None = None  # known ones

    @cached_property
    def names(self) -> Labels:
        """The labels that occur."""
        return np.unique(self.labels)

    @cached_property
    def numbers(self) -> Numbers:
        """The cluster of each sample, as the place of its label among the names."""
        return np.searchsorted(self.names, self.labels)

    @property
    def n_clusters(self) -> int:
        return len(self.names)

    @cached_property
    def drawn(self) -> Numbers:
        """The rows for what costs too much for all rows."""
        return draw_by_cluster(self.numbers, DRAWN)

    @cached_property
    def scores(self) -> Array | None:
        """The scores of the samples, which a method that is fitted on them may keep; None without score space."""
        known = self.model.kept_scores
        if self.of_training and known is not None and len(known) == self.views.n_samples:
            return known
        return narrowed(self.model.scores(self.views), self.views.dtype) if self.model.can("scores") else None

    @cached_property
    def separation(self) -> Separation:
        return separation(self.scores, self.numbers, self.drawn)

    @cached_property
    def view_labels(self) -> Mapping[str, Labels]:
        """The labels by each view alone of the samples in `labelled`."""
        known = self.model.labels_by_view if self.of_training else None
        if known is not None:
            return known
        if self.model.can("labels_by_view") and self.model.seen_names == self.model.names:
            return dict(self.model.ask("labels_by_view", self.views.take(self.drawn)))
        return {}

    @property
    def labelled(self) -> Numbers:
        """All rows if the model keeps the labels by each view alone, otherwise the drawn ones."""
        lengths = {len(labels) for labels in self.view_labels.values()}
        return np.arange(len(self.labels)) if lengths == {len(self.labels)} else self.drawn

    def labels_with(self, view: str) -> tuple[Numbers, Labels]:
        """Return the clusters of labelled samples that have a view, and their labels by the view alone."""
        present = self.views.present.get(view)
        has_view = slice(None) if present is None else present[self.labelled]
        return self.numbers[self.labelled][has_view], self.view_labels[view][has_view]

    def numbers_with(self, view: str) -> Numbers:
        """Return the clusters of the samples that have a view."""
        return self.numbers[self.views.present.get(view, slice(None))]

    def view_scores(self) -> dict[str, Array]:
        """Return the scores of the drawn samples by each view, for views that have their own."""
        model, views, scores = self.model, self.views, {}
        if model.can("scores_by_view"):
            found = model.ask("scores_by_view", views.take(self.drawn))
            scores = {name: narrowed(x, views.dtype) for name, x in found.items()}
        elif self.of_training:
            known = model.learnt.get("embeddings_") or model.learnt.get("partitions_", {})
            scores = {name: of_view[self.drawn] for name, of_view in known.items()}
        return {name: scores[name] for name in model.seen_names if name in scores}


def names_of(parameter: str, given: Any, n: int) -> tuple[str, ...]:
    """Return one name or class for each of n samples, by default their numbers."""
    values = list(range(n) if given is None else given)
    if len(values) != n:
        raise InputError(f"{parameter} has {len(values)} entries, but the views have {n} samples; give one for each")
    for i, value in enumerate(values):
        if np.ndim(value):
            raise InputError(f"{parameter} has more than one dimension; give one entry for each sample, as in ravel()")
        if value is None or value != value:  # NaN
            raise InputError(f"{parameter} has no entry in row {i} ({value}); give one for each sample")
    return tuple(map(str, values))
