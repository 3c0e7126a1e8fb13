"""Model: everything that a fit learns, as one frozen value that predictions, summaries, files and reports read."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.utils import gen_batches

from coview.base.runtime import Workers
from coview.core.assign import Labels
from coview.core.fingerprint import fingerprint
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import Note
from coview.kernels import Kernel
from coview.model.schema import Schema
from coview.preprocess.encode import Encoding

_BLOCK_ROWS = 16_384  # that a stage changes at a time, because a copy of all rows may not fit into memory


class Stage(ABC):
    """What a wrapper does to views before the method inside sees them; learnt and frozen."""

    joins_views: ClassVar[bool] = False  # whether they become one table

    @abstractmethod
    def __call__(self, views: Views) -> Views:
        """Return the changed views of these samples."""

    def words(self, view: str) -> list[str]:
        """Return what is done to a view, in words."""
        return []

    def inner_name(self, view: str) -> str:
        """Return the name of what becomes of a view."""
        return view


@dataclass(frozen=True, eq=False)
class Model:
    """What is learnt: stages that views pass, a predictor, and the attributes that an estimator publishes.

    A wrapper returns the model of the estimator inside with a further stage. The learnt attributes are those of the
    method inside: if it was trained on some of the samples, they have a row for each of these.
    """

    labels: Labels  # of the training samples; empty if they were not labelled
    learnt: Mapping[str, Any]  # attributes by name, such as scores_ and eigenvalues_
    predictor: Predictor | None = None  # None if new samples cannot be labelled
    stages: tuple[Stage, ...] = ()
    notes: tuple[Note, ...] = field(default=(), compare=False)  # warnings of the fit, which are not saved
    schema: Schema | None = None  # of the views before all stages; set when an estimator is fitted
    fingerprint: str = ""  # of the training samples
    method_labels: Labels | None = None  # of the samples that the method was trained on, if these are not all
    unpublished: tuple[str, ...] = ()  # attributes that describe these samples, or one of several models

    def after(self, stage: Stage) -> Model:
        """Return the model of views that pass a stage first."""
        return replace(self, stages=(stage, *self.stages))

    def with_notes(self, *notes: Note) -> Model:
        """Return the model with further warnings."""
        return replace(self, notes=(*self.notes, *notes))

    def seen(self, views: Views) -> Views:
        """Return the views that the method inside sees."""
        for stage in self.stages:
            views = stage(views)
        return views

    def can(self, question: str) -> bool:
        """Return whether the predictor answers a question, such as "scores" or "membership"."""
        return self.predictor is not None and self.predictor.can(question)

    @property
    def n_clusters(self) -> int:
        """The number of clusters among which new samples are labelled."""
        return int(self._able.n_clusters)

    @property
    def n_components(self) -> int:
        """The number of scores of a sample, if it has any."""
        return int(self._able.n_components)

    @property
    def _able(self) -> Any:
        """The predictor, asked for what it may not have: the estimator or `can` has said that it does."""
        return self.predictor

    @property
    def names(self) -> tuple[str, ...]:
        """The views that the model was fitted on."""
        return self.schema.names if self.schema else ()

    @property
    def encodings(self) -> Mapping[str, Encoding]:
        """The encodings of views with categories."""
        return self.schema.encodings if self.schema else {}

    @property
    def seen_names(self) -> tuple[str, ...]:
        """The views that the method sees as such; none if it sees one table of all columns."""
        return () if any(stage.joins_views for stage in self.stages) else self.names

    @property
    def kernels(self) -> dict[str, Kernel]:
        """The kernels of these views."""
        kernels = self.learnt.get("kernels_", {})
        return {name: kernels[name] for name in self.seen_names if name in kernels}

    def inner_name(self, view: str) -> str:
        """Return the name of a view, or of the table that it becomes part of, in the method inside."""
        for stage in self.stages:
            view = stage.inner_name(view)
        return view

    def words(self, view: str) -> list[str]:
        """Return what stages and the predictor do to a view, in words, the outermost first."""
        found, seen = list[str](), view
        for each in (*self.stages, self.predictor):
            own = [] if each is None else each.words(seen)
            found += own if seen == view else [f"{words} (of all columns)" for words in own]
            seen = each.inner_name(seen) if isinstance(each, Stage) else seen
        return found

    @property
    def kept_scores(self) -> Array | None:
        """The scores of the samples that the method was trained on, if it keeps them."""
        kept = (self.learnt.get(name) for name in ("scores_", "consensus_", "embedding_"))
        return next((np.asarray(scores) for scores in kept if scores is not None), None)

    @property
    def labels_by_view(self) -> dict[str, Labels] | None:
        """The labels of the training samples by each view alone; None if there are none, or only of some samples."""
        if "view_labels_" in self.unpublished:
            return None
        if "view_labels_" in self.learnt:
            return dict(self.learnt["view_labels_"])
        own = self.seen_names == self.names and self.method_labels is None
        training: Any = getattr(self.predictor, "training_labels_by_view", None)
        return training() if own and training is not None else None

    def is_of(self, views: Views) -> bool:
        """Return whether these are the training samples, and have labels."""
        return len(self.labels) > 0 and self.fingerprint == fingerprint(views)

    def ask(self, question: str, views: Views) -> Any:
        """Return what the predictor answers about these samples: an array, or arrays by view name."""
        answer = getattr(self.predictor, question)
        if not self.stages:
            return answer(views)
        return concatenated(
            [answer(self.seen(views.take(block))) for block in gen_batches(views.n_samples, _BLOCK_ROWS)]
        )

    def predict(self, views: Views) -> Labels:
        """Return the cluster of each sample."""
        return np.asarray(self.ask("labels", views))

    def labels_and_ties(self, views: Views) -> Labels:
        """Return the cluster of each sample, and 1 if it may depend on the numbers of clusters; (n_samples, 2)."""
        return np.asarray(self.ask("labels_and_ties", views))

    def scores(self, views: Views) -> Array:
        """Return the scores of each sample."""
        return np.asarray(self.ask("scores", views))

    def usualness(self, views: Views) -> dict[str, Array]:
        """Return the fraction of training samples that are more novel than each sample, in each view."""
        return dict(self.ask("usualness", views))

    def joint_usualness(self, of_views: Mapping[str, Array]) -> Array:
        """Return the same for all views of each sample together."""
        return np.asarray(self._able.joint_usualness(of_views))

    def membership(self, views: Views) -> Array:
        """Return the membership of each sample in each cluster."""
        return np.asarray(self.ask("membership", views))

    def contributions(self, views: Views) -> dict[str, Array]:
        """Return the contributions of the views to the clusters of the samples."""
        return dict(self.ask("contributions", views))

    @property
    def trained_labels(self) -> Labels:
        """The labels of the samples that the method was trained on."""
        return self.labels if self.method_labels is None else self.method_labels

    def level(self, n_clusters: int) -> Labels:
        """Return the clusters of the training samples for another number, of a model with a tree."""
        found: Labels = self._able.level(n_clusters)
        return found

    def renumbered(self, order: Labels) -> Model | None:
        """Return the model whose clusters `order` have the numbers 0, 1, …; None if numbers cannot change."""
        if self.method_labels is not None:  # the numbers are those of all samples
            return None
        found = self._able.renumbered(order, self.labels, self.learnt)
        if found is None:
            return None
        return replace(self, predictor=found.predictor, labels=found.labels, learnt={**self.learnt, **found.learnt})

    def reclustered(self, views: Views, rng: np.random.Generator) -> tuple[Model, Labels]:
        """Return the model with clusters that are learnt from these samples, and `labels_and_ties` of them."""
        predictor, found = self._able.reclustered(self.seen(views), rng)
        labels = predictor.labels_of_scores(self.learnt["scores_"])
        return replace(self, predictor=predictor, labels=labels), found


class Predictor(ABC):
    """Labels samples by the clusters 0, 1, …; a sample gets the same label alone and in any batch."""

    @property
    @abstractmethod
    def n_clusters(self) -> int:
        """The number of clusters that are found."""

    @abstractmethod
    def labels_and_ties(self, views: Views) -> Labels:
        """Return the cluster of each sample, and 1 if it may depend on the numbers of clusters; (n_samples, 2)."""

    def labels(self, views: Views) -> Labels:
        """Return the cluster of each sample."""
        return np.ascontiguousarray(self.labels_and_ties(views)[:, 0])

    def words(self, view: str) -> list[str]:
        """Return the preprocessing of a view, in words."""
        return []

    def can(self, question: str) -> bool:
        """Return whether it answers a question, such as "scores" or "membership"."""
        return hasattr(self, question)

    def renumbered(self, order: Labels, labels: Labels, learnt: Mapping[str, Any]) -> Renumbered | None:
        """Return what changes if the clusters `order` have the numbers 0, 1, …; None if numbers cannot change.

        Given are the labels and the learnt attributes of the training samples.
        """
        return None


class Renumbered(NamedTuple):
    """What changes with the numbers of the clusters."""

    predictor: Predictor
    labels: Labels  # of the training samples
    learnt: Mapping[str, Any] = {}  # the attributes that change


class Scorer(Predictor):
    """A predictor with scores, memberships, novelty and contributions; views that a sample lacks have NaN."""

    @property
    @abstractmethod
    def n_components(self) -> int:
        """The number of scores of a sample."""

    @abstractmethod
    def scores(self, views: Views) -> Array:
        """Return the scores of each sample, (n_samples, n_components)."""

    @abstractmethod
    def membership(self, views: Views) -> Array:
        """Return the membership of each sample in each cluster, (n_samples, n_clusters); rows sum to 1."""

    @abstractmethod
    def labels_by_view(self, views: Views) -> dict[str, Labels]:
        """Return the labels by each view alone; -1 for samples that lack the view."""

    @abstractmethod
    def usualness(self, views: Views) -> dict[str, Array]:
        """Return the fraction of training samples that are more novel than each sample, in each view."""

    @abstractmethod
    def joint_usualness(self, of_views: Mapping[str, Array]) -> Array:
        """Return the same for all views of each sample together, given that in each view."""

    @abstractmethod
    def contributions(self, views: Views) -> dict[str, Array]:
        """Return how much each view contributes to the cluster of each sample, in contrast to the next one."""


def in_blocks(function: Callable[[Views], Array], views: Views, n_rows: int, n_jobs: int | None) -> Array:
    """Return a function of all samples, computed in blocks of rows and in threads, with memory for a few blocks."""
    n = views.n_samples
    if n <= n_rows:
        return function(views)
    found: list[Array] = []  # the result, once the first block has its shape; blocks and result would need twice
    lock = Lock()

    def fill(block: slice) -> None:
        part = function(views.take(block))
        with lock:
            if not found:
                found.append(np.empty((n, *part.shape[1:]), part.dtype))
        found[0][block] = part

    with Workers(n_jobs) as workers:
        workers.map(fill, [slice(start, start + n_rows) for start in range(0, n, n_rows)])
    return found[0]


def concatenated(blocks: Sequence[Any]) -> Any:
    """Return the answers about all blocks as one array, or as one array by view."""
    if len(blocks) == 1:
        return blocks[0]
    if isinstance(blocks[0], Mapping):
        return {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    return np.concatenate(blocks)
