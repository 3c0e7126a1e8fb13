"""What clusterers by scores share: scores and labels of new samples, and the labels by each view."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any, Literal, Self, TypeVar, overload

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from coview.core.assign import Assignment, Deferred, Labels, label_and_tie, new_numbers, reordered
from coview.core.contributions import decision_margins, first_and_second, normalised_parts
from coview.errors import InputError
from coview.methods.base import MultiViewClusterer
from coview.parameters import check_number
from coview.rows import narrowed
from coview.state import CACHE, FloatArray, Size, SomeViews
from coview.views import Array, Views, row_labels

Computed = TypeVar("Computed")


class ScoreClusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, MultiViewClusterer):
    """Base class of clusterers that compute scores of samples and assign clusters by these.

    A subclass computes the joint scores of samples and the scores of each view. Its `fit` stores the scores of the
    training samples and their clusters.
    """

    scores_: Annotated[Array, FloatArray("train", "components")]
    _n_features_out: Annotated[int, Size("components")]
    _assignment: Assignment
    _view_assigner: Deferred
    _view_assignments: SomeViews[Assignment]  # learnt by `recluster`; the others follow from the training samples
    _computed: Annotated[dict[Any, Any], CACHE]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @abstractmethod
    def _ensemble(self, views: Views) -> Array:
        """Return the ensemble scores of a block of samples."""

    @abstractmethod
    def _scores_of(self, views: Views) -> tuple[Array, dict[str, Array]]:
        """Return the ensemble scores and each view's own scores, which are NaN for samples that lack the view."""

    def _scores_of_views(self, views: Views) -> dict[str, Array]:
        """Return each view's own scores."""
        return self._scores_of(views)[1]

    @abstractmethod
    def _training_scores(self, name: str) -> Array:
        """Return a view's own scores of the training samples; NaN for samples that lack it."""

    @abstractmethod
    def _quantiles_of(self, views: Views, per_view: bool) -> Any:
        """Return the fractions of training samples that are more novel than each sample, jointly or by view name."""

    @property
    @abstractmethod
    def _weights_of_views(self) -> dict[str, float]:
        """The weight of each view in the ensemble scores."""

    @abstractmethod
    def _scores_and_parts(self, views: Views) -> tuple[Array, dict[str, Array]]:
        """Return the ensemble scores and each view's summand of them, which is NaN for samples that lack the view."""

    def _by_block(self, function: Callable[[Views], Array], views: Views) -> Array:
        """Return a function of all rows, which a subclass may compute in blocks of rows."""
        return function(views)

    def _by_nearness(self, function: Callable[[Array], Array], views: Views) -> Array:
        """Return a function of the nearness of all rows to the clusters."""
        return self._by_block(lambda block: function(self._assignment.nearness(self._ensemble(block))), views)

    @overload
    def transform(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @overload
    def transform(self, X: Any, per_view: bool = False) -> Any: ...  # an array, or a data frame after `set_output`

    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the score variables of these samples.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return each view's own scores instead; NaN for samples that lack the view.

        Returns
        -------
        array of shape (n_samples, n_components), or a dictionary of such arrays by view name
        """
        if per_view and self._output_container() != "default":  # scikit-learn would turn the result into one data frame
            raise InputError("transform(per_view=True) returns a dictionary; reset set_output to 'default' to get it")
        views = self._views_to_predict(X)
        if per_view:
            return {name: narrowed(scores, views.dtype) for name, scores in self._scores_of_views(views).items()}
        return self._labelled(narrowed(self._by_block(self._ensemble, views), views.dtype), views.index)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of the training samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        return self._labelled(self.fit(X).scores_, row_labels(X))

    @overload
    def predict(self, X: Any, per_view: Literal[False] = False, novel_below: float | None = None) -> Labels: ...

    @overload
    def predict(self, X: Any, per_view: Literal[True], novel_below: float | None = None) -> dict[str, Labels]: ...

    @overload
    def predict(self, X: Any, per_view: bool, novel_below: float | None = None) -> Labels | dict[str, Labels]: ...

    def predict(self, X: Any, per_view: bool = False, novel_below: float | None = None) -> Labels | dict[str, Labels]:
        """Return the cluster of each sample; a sample gets the same label alone and in any batch.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return labels by each view's own scores (individual assignment) instead of the ensemble scores; -1 for
            samples that lack the view.
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` is below this have the label -1. With 0.01, about 1 % of samples like the
            training samples have it.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        views = self._views_to_predict(X)
        quantiles = None
        if novel_below is not None:
            check_number("novel_below", novel_below, 0, 1)
            quantiles = self._quantiles_of(views, per_view)
        if not per_view:
            labels = self._by_nearness(lambda nearness: nearness.argmax(axis=1), views)
            return labels if quantiles is None else np.where(quantiles < novel_below, -1, labels)
        of_views = {name: self._labels_of_view(name, e) for name, e in self._scores_of_views(views).items()}
        if quantiles is None:
            return of_views
        return {name: np.where(quantiles[name] < novel_below, -1, labels) for name, labels in of_views.items()}

    def _labels_and_ties(self, X: Any) -> Labels:
        return self._by_nearness(label_and_tie, self._views_to_predict(X))

    def _renumber(self, order: Labels) -> bool:
        order, numbers = new_numbers(order, self._assignment.n_found)
        self._assignment = reordered(self._assignment, order)
        labels, tied = label_and_tie(self._assignment.nearness(self.scores_)).T
        self.labels_ = np.where(tied, labels, numbers[self.labels_])
        return True

    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each sample in each cluster.

        The memberships of a sample sum to 1, and the largest, the first of several, is that of its cluster in
        `predict`. It estimates the fraction of models of random subsets of the training samples that assign the sample
        to the same cluster; see docs/certainty.md. Kernel methods with dtype="auto" compute it mostly in float32.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_clusters), with the number of clusters that are found
        """
        views = self._views_to_predict(X)
        return self._by_nearness(self._assignment.softmax, views)

    @overload
    def score_samples(self, X: Any, per_view: Literal[False] = False) -> Array: ...

    @overload
    def score_samples(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    def score_samples(self, X: Any, per_view: bool = False) -> Array | dict[str, Array]:
        """Return how usual each sample is among the training samples, from 0 to 1; a low score means a novel sample.

        In each view, the similarity of a sample to its most similar training samples is compared with that of training
        samples to the others: the score is the fraction of training samples for which it is smaller. The joint score
        compares the mean over the views of a sample in the same way. See docs/certainty.md.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the score in each view instead; NaN for samples that lack the view.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        return self._quantiles_of(self._views_to_predict(X), per_view)

    def view_contributions(self, X: Any) -> dict[str, Array]:
        """Return how much each view contributes to the cluster of each sample, in contrast to the next nearest cluster.

        The contributions of all views sum to the decision margin: half the difference between the squared distances
        from the direction of the sample's scores to the centre of the next nearest cluster and to that of its own. A
        view with a negative contribution contradicts the label. docs/stability.md has the definition.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        dict
            Arrays of shape (n_samples,) by view name, NaN for samples that lack the view.
        """
        views = self._views_to_predict(X)
        scores, parts = self._scores_and_parts(views)
        parts = normalised_parts(parts, scores)
        clusters = first_and_second(self._assignment, scores)
        return decision_margins(parts, self._weights_of_views, self._assignment.centres, *clusters)

    @property
    def view_labels_(self) -> dict[str, Labels]:
        """Clusters of the training samples by each view's own scores (individual assignment), by view name.

        The label is -1 if a sample lacks the view.
        """
        check_is_fitted(self)
        return {name: self._labels_of_view(name, self._training_scores(name)) for name in self.view_names_}

    def _labels_of_view(self, name: str, scores: Array) -> Labels:
        """Return the labels by a view's own scores; -1 for scores that are NaN."""
        present = _is_known(scores)
        labels = np.full(len(scores), -1)
        if present.any():
            labels[present] = self._view_assignment(name).assign(scores[present])
        return labels

    def _view_assignment(self, name: str) -> Assignment:
        """Return a view's own clusters, learnt when they are first used."""
        if name in self._view_assignments:
            return self._view_assignments[name]

        def learn() -> Assignment:
            scores = self._training_scores(name)
            return self._view_assigner.fit(scores[_is_known(scores)])

        return self._once(("assignment", name), learn)

    def _once(self, key: Any, compute: Callable[[], Computed]) -> Computed:
        """Return a result that is computed when it is first used; it is not saved."""
        if key not in self._computed:
            self._computed[key] = compute()
        found: Computed = self._computed[key]
        return found

    def _fewer_clusters(self, scores: Array, n_clusters: int) -> Labels:
        """Return the labels of these scores for fewer clusters, from the components that are used for that number."""
        n_dropped = self._view_assigner.n_clusters - n_clusters
        used = scores[:, : max(1, scores.shape[1] - n_dropped)]
        return replace(self._view_assigner, n_clusters=n_clusters).fit(used).assign(used)

    def recluster(self, X: Any) -> Self:
        """Learn the clusters again, from the scores of these samples; the scores do not change.

        More samples than those of `fit` determine the clusters better, at the cost of their scores. Both the joint
        clusters and those of single views are learnt again, and numbered by decreasing size among these samples.

        Parameters
        ----------
        X : views, as in `as_views`
            Samples of all clusters.

        Returns
        -------
        self
        """
        self._recluster(X)
        return self

    def _recluster(self, X: Any) -> Labels:
        """Learn the clusters again, and return `_labels_and_ties` of these samples."""
        views = self._views_to_predict(X)
        learn = self._view_assigner
        scores, of_views = self._scores_of(views)
        self._assignment = learn.assigner.fit(scores, learn.n_clusters, self._generator(), learn.decimals)
        self.labels_ = self._assignment.assign(self.scores_)
        known = {name: of_view[_is_known(of_view)] for name, of_view in of_views.items()}
        # If no sample has a view, its clusters stay as they are.
        self._view_assignments |= {name: learn.fit(of_view) for name, of_view in known.items() if len(of_view)}
        self._warn_if_fewer(self._assignment.n_found, learn.n_clusters)
        return label_and_tie(self._assignment.nearness(scores))


def _is_known(scores: Array) -> Array:
    """Return which samples have the view of these scores."""
    return np.logical_not(np.isnan(scores).any(axis=1))
