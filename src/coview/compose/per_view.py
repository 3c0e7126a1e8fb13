"""PerView: one model for each view, and the view whose clusters agree best with those of the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from coview.base.progress import Progress
from coview.compose.wrapper import Wrapper, learn, part_of, require_clusterer
from coview.core.agreement import mean_agreements, size_entropy
from coview.core.assign import Labels
from coview.data.as_views import Layout
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import Note
from coview.kernels import by_view_name
from coview.model.clusterer import Clusterer
from coview.model.model import Model, Predictor


class PerView(Wrapper):
    """Cluster each view separately, and select the view whose clusters agree best with those of the others.

    No known classes are used. The merit of a view is the mean adjusted Rand index between its clusters and those of
    every other view (0 if negative), times the normalised entropy of its cluster sizes, because one large cluster and a
    few tiny ones are not informative. Two views agree with each other equally, so the size entropy decides.

    Parameters
    ----------
    estimator : clusterer, or mapping from view name to clusterer
        The estimator of a view, such as KSC(3) or a clusterer of scikit-learn.
    views : list or mapping, optional
        How a stacked X is split into views; see `as_views`.

    Attributes
    ----------
    model_ : Model
        What is learnt; `model_.predictor.models` has the model of each view.
    view_labels_ : dict
        Clusters of the training samples by each view.
    merits_ : dict
        The merit of each view.
    best_view_ : str
        The view with the highest merit.
    labels_ : array of shape (n_samples,)
        Clusters of the training samples by the best view.

    See Also
    --------
    Concat : One model of the columns of all views.

    Examples
    --------
    >>> import numpy as np
    >>> from coview import KSC
    >>> height = np.array([[1.0], [1.1], [1.2], [1.8], [1.9]])
    >>> weight = np.array([[20.0], [21.0], [25.0], [80.0], [81.0]])
    >>> noise = np.array([[3.0], [9.0], [3.0], [9.0], [3.0]])
    >>> model = PerView(KSC(2)).fit({"noise": noise, "height": height, "weight": weight})
    >>> model.best_view_, model.labels_
    ('height', array([0, 0, 0, 1, 1]))
    """

    kept_abilities = frozenset({"predict", "predict_proba", "score_samples"})
    may_lack_views = False
    merits_: dict[str, float]
    best_view_: str

    def __init__(self, estimator: Any, *, views: Layout = None) -> None:
        self.estimator = estimator
        self.views = views

    def check_views(self, views: Views) -> tuple[Note, ...]:
        for each in self._estimators(views.names).values():
            require_clusterer(each)
        return ()

    def fit_model(self, views: Views, report: Progress) -> Model:
        models = {
            name: learn(estimator, views.select([name]), report)
            for name, estimator in self._estimators(views.names).items()
        }
        labels = {name: model.labels for name, model in models.items()}
        most = max(len(np.unique(each)) for each in labels.values())
        size_entropies = {name: size_entropy(each, most) for name, each in labels.items()}
        # Agreement below chance counts as none: otherwise a larger size entropy would lower the merit.
        agreements = np.maximum(mean_agreements(list(labels.values())), 0.0)
        merits = {name: float(a * size_entropies[name]) for name, a in zip(views, agreements, strict=True)}
        best = max(views, key=lambda name: (merits[name], size_entropies[name]))
        predicts = all(model.predictor is not None for model in models.values())
        own = {"view_labels_": labels, "merits_": merits, "best_view_": best}
        of_best = models[best].learnt
        notes = tuple(note for model in models.values() for note in model.notes)
        of_views = {name: replace(model, notes=()) for name, model in models.items()}
        predictor = BestView(of_views, best) if predicts else None
        return Model(
            labels[best],
            {**of_best, **own},
            predictor,
            notes=notes,
            method_labels=models[best].method_labels,
            unpublished=tuple(name for name in of_best if name not in own),
        )

    def of_part(self, found: Model, rows: Array, seed: int) -> Self:
        models = dict.fromkeys(found.learnt["merits_"], found)
        if isinstance(found.predictor, BestView):
            models |= found.predictor.models
        estimators = self._estimators(tuple(models))
        parts = {name: part_of(each, models[name], rows, seed) for name, each in estimators.items()}
        return Clusterer.of_part(self, found, rows, seed).set_params(estimator=parts)

    def _estimators(self, names: tuple[str, ...]) -> dict[str, Any]:
        """Return the estimator of each view."""
        if isinstance(self.estimator, Mapping):
            return by_view_name("estimator", self.estimator, names)
        return dict.fromkeys(names, self.estimator)


@dataclass(frozen=True)
class BestView(Predictor):
    """A model of each view; the best one answers, or each for its view."""

    models: Mapping[str, Model]
    best: str

    @property
    def n_clusters(self) -> int:
        return self.models[self.best].n_clusters

    @property
    def of_best(self) -> Predictor:
        """The predictor of the best view."""
        found = self.models[self.best].predictor
        assert found is not None
        return found

    def words(self, view: str) -> list[str]:
        return self.models[view].words(view)

    def can(self, question: str) -> bool:
        if question == "labels_by_view":
            return True
        return super().can(question) and all(model.can(question) for model in self.models.values())

    def labels_and_ties(self, views: Views) -> Labels:
        labels = self.labels(views)
        return np.column_stack([labels, np.ones_like(labels)])

    def labels(self, views: Views) -> Labels:
        return self.models[self.best].predict(views.select([self.best]))

    def labels_by_view(self, views: Views) -> dict[str, Labels]:
        """Return the labels by the model of each view."""
        return {name: model.predict(views.select([name])) for name, model in self.models.items()}

    def scores(self, views: Views) -> Array:
        """Return the scores in the best view."""
        return np.asarray(self.models[self.best].scores(views.select([self.best])))

    def scores_by_view(self, views: Views) -> dict[str, Array]:
        """Return the scores by the model of each view."""
        return {name: model.scores(views.select([name])) for name, model in self.models.items()}

    def membership(self, views: Views) -> Array:
        """Return the membership in the clusters of the best view."""
        return self.models[self.best].membership(views.select([self.best]))

    def usualness(self, views: Views) -> dict[str, Array]:
        """Return how usual the samples are in each view."""
        found = {}
        for name, model in self.models.items():
            found[name] = model.joint_usualness(model.usualness(views.select([name])))
        return found

    def joint_usualness(self, of_views: Mapping[str, Array]) -> Array:
        """Return how usual the samples are in the best view."""
        return of_views[self.best]
