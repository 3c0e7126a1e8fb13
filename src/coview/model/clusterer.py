"""Clusterer: the base class of all estimators, which has every public method once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import ClassifierTags, estimator_html_repr
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted, validate_data

from coview.base.parameters import check_integer, check_number
from coview.base.progress import Progress, reporting
from coview.core.assign import Labels
from coview.core.fingerprint import fingerprint
from coview.data.as_views import as_views, holds_several, row_labels
from coview.data.mistakes import likely_mistakes
from coview.data.rows import narrowed
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, Note, warn
from coview.model.fitting import as_generator, as_part, note_on_fewer, note_on_many_clusters, require_enough_samples
from coview.model.model import Model
from coview.model.notebook import fitted_facts
from coview.model.schema import Schema
from coview.registry import FIGURES

# What estimators can do; the methods of these names are there if an estimator can.
PREDICTS = frozenset({"predict"})
SCORES = PREDICTS | {"transform", "fit_transform", "predict_proba", "score_samples", "view_contributions"}
RECLUSTERS = SCORES | {"recluster"}


class Clusterer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator, ABC):
    """Base class of all estimators: a subclass learns a `Model` from validated views in `fit_model`.

    `fit` validates the views, learns the model, and publishes what it holds as attributes. All other methods ask it.
    """

    abilities: ClassVar[frozenset[str]] = frozenset()  # wrappers have those of the estimator inside
    may_lack_views: ClassVar[bool] = False  # whether samples need not have all views
    trains_on_some_rows: ClassVar[bool] = False  # whether it has the method `train`, of a source of rows
    n_clusters: Any
    views: Any = None  # methods of one view do not have this parameter
    random_state: Any
    model_: Model
    labels_: Labels
    view_names_: tuple[str, ...]
    view_n_features_: dict[str, int]
    n_features_in_: int
    feature_names_in_: Array

    @abstractmethod
    def fit_model(self, views: Views, report: Progress) -> Model:
        """Return what is learnt from validated views, after the parameters are checked; nothing is stored."""

    def check_views(self, views: Views) -> tuple[Note, ...]:
        """Raise an InputError if these views cannot be clustered, and return warnings about them."""
        # scikit-learn's contract fits one table with n_clusters=1, so one view has the trivial solution.
        several = len(views) > 1
        or_else = f" for {len(views)} views" if several else ""
        k = check_integer("n_clusters", self.n_clusters, 1 + several, or_else=or_else)
        require_enough_samples(k, views.n_samples)
        return note_on_many_clusters(k, views.n_samples)

    def check_coverage(self, views: Views) -> None:
        """Raise an InputError if too few samples have a view; parts of the samples need not have as many."""

    def fills_cells(self, view: str) -> bool:
        """Return whether empty cells of a view are filled; they are refused otherwise."""
        return False

    @property
    def method(self) -> Any:
        """The method inside wrappers, with the given parameters; the estimator itself if it is no wrapper."""
        return self

    def of_part(self, found: Model, rows: Array, seed: int) -> Self:
        """Return an estimator with the settings of a fitted model for some of its samples, in one thread."""
        return as_part(self, seed)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # allow_nan stays False also if samples may lack views: scikit-learn's checks then set single cells to NaN,
        # which are refused.
        if "transform" in self.abilities:
            tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        else:
            tags.transformer_tags = None
        if "predict_proba" in self.abilities:
            # Its check of sparse input reads these tags of every estimator with predict_proba, and expects two columns
            # of one that is not multi-class, as many as there are clusters by default. A clusterer is no classifier.
            tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags

    def _html_repr(self) -> str:
        """Return the diagram of scikit-learn and what was learnt, which notebooks show."""
        return estimator_html_repr(self) + fitted_facts(self)

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """Return no attributes for the diagram: scikit-learn reads all properties, of which some take seconds."""
        return {}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the clusters from the training samples; a fit that fails does not change the estimator.

        Parameters
        ----------
        X : views, as in `as_views`
            The training samples.
        y : ignored

        Returns
        -------
        self
        """
        _refuse_views_as_y(y)
        with reporting(getattr(self, "progress", None)) as report:
            return self.fit_reporting(X, report)

    def fit_reporting(self, X: Any, report: Progress) -> Self:
        """Fit, and report the stages to a function instead of the parameter `progress`."""
        before = self.__dict__.copy()
        try:
            views = given = as_views(X, self.views, self.fills_cells)
            self.check_missing(given)
            schema, views = Schema.learn(given, self.fills_cells, self.may_lack_views)
            sentences = [] if given is X else likely_mistakes(given)  # otherwise a reader has validated them
            notes = (*(Note(sentence, UserWarning) for sentence in sentences), *self.check_views(views))
            self.check_coverage(views)
            self._check_stacked_columns(X, given, reset=True)
            found = self.fit_model(views, report)
            found = replace(found, schema=schema, fingerprint=fingerprint(views), notes=(*notes, *found.notes))
            self.publish(found)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    def publish(self, model: Model) -> None:
        """Make what is learnt the attributes of this estimator, and give the warnings about it."""
        assert model.schema is not None
        for name in self._published():
            self.__dict__.pop(name, None)
        learnt = {name: value for name, value in model.learnt.items() if name not in model.unpublished}
        if len(model.labels):
            learnt["labels_"] = model.labels
        learnt |= {"view_names_": model.schema.names, "view_n_features_": dict(model.schema.n_features)}
        self.__dict__.update(learnt, model_=replace(model, notes=()))
        for note in dict.fromkeys(model.notes):
            warn(*note)

    def _published(self) -> list[str]:
        """Return the names of the attributes of an earlier fit."""
        learnt = vars(self).get("model_")
        return [] if learnt is None else ["labels_", *learnt.learnt]

    def fit_predict(self, X: Any, y: Any = None) -> Labels:
        """Fit, and return the clusters of the training samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples,)
        """
        return self.fit(X, y).labels_

    def check(self, X: Any) -> Views:
        """Return validated new views, compared with those of the fit, with their categories encoded."""
        check_is_fitted(self)
        schema = self.model_.schema
        assert schema is not None
        views = schema.read(X, self.views)
        self._check_stacked_columns(X, views, reset=False)
        self.check_missing(views)
        return schema.matched(views, X, type(self).__name__)

    def check_missing(self, views: Views) -> None:
        """Raise an InputError if samples lack views and this estimator needs all of them."""
        if views.complete or self.may_lack_views:
            return
        lacking = ", ".join(f"{name}: {(~mask).sum()}" for name, mask in views.present.items())
        raise InputError(
            f"{type(self).__name__} needs all views of each sample, and {(~views.has_all()).sum()} of "
            f"{views.n_samples} samples lack some (rows that are NaN throughout, {lacking}); drop these samples, or "
            "use TMvKSCR or Coview"
        )

    def _check_stacked_columns(self, X: Any, views: Views, *, reset: bool) -> None:
        """Record (reset) or compare the columns of one stacked table, as scikit-learn does."""
        if not holds_several(X):
            try:
                validate_data(self, X, reset=reset, skip_check_array=True)
            except (TypeError, ValueError) as error:
                raise InputError(str(error)) from None
        elif reset:
            self.n_features_in_ = sum(views.n_features.values())
            self.__dict__.pop("feature_names_in_", None)

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
            Return labels by each view alone, if the method has them; -1 for samples that lack the view.
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` is below this have the label -1. With 0.01, about 1 % of samples like the
            training samples have it.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        views = self.check(X)
        if novel_below is not None:
            self._require("score_samples", f"novel_below={novel_below}", "novelty scores", "leave it out")
            check_number("novel_below", novel_below, 0, 1)
        below = 0 if novel_below is None else novel_below
        usual = self.model_.usualness(views) if below else {}
        if per_view:
            of_views = self._by_view("labels_by_view", views)
            return {name: np.where(usual[name] < below, -1, x) if below else x for name, x in of_views.items()}
        labels = self.model_.predict(views)
        return np.where(self.model_.joint_usualness(usual) < below, -1, labels) if below else labels

    @overload
    def transform(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @overload
    def transform(self, X: Any, per_view: bool = False) -> Any: ...  # an array, or a data frame after `set_output`

    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the scores of these samples: their coordinates in the latent space.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return each view's own scores instead, if the method has them; NaN for samples that lack the view.

        Returns
        -------
        array of shape (n_samples, n_components), or a dictionary of such arrays by view name
        """
        if per_view and self._output_container() != "default":  # scikit-learn would turn the result into one data frame
            raise InputError("transform(per_view=True) returns a dictionary; reset set_output to 'default' to get it")
        views = self.check(X)
        if per_view:
            return {name: narrowed(e, views.dtype) for name, e in self._by_view("scores_by_view", views).items()}
        return self._labelled(narrowed(self.model_.scores(views), views.dtype), views.index)

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the scores of the training samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        kept = vars(self.fit(X, y)).get("scores_")
        return self.transform(X) if kept is None else self._labelled(kept, row_labels(X))

    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each sample in each cluster; rows sum to 1.

        The largest membership, the first of several, is that of the cluster in `predict`. For `Coview` it is the mean
        of two fractions: of the sample's neighbours in all graphs that are in the cluster, and of the cluster's samples
        that have the same labels by the members. For methods with scores it estimates the fraction of models of random
        subsets of the training samples that assign the sample to the same cluster. See docs/certainty.md.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_clusters), with the number of clusters that are found
        """
        views = self.check(X)
        return self.model_.membership(views)

    @overload
    def score_samples(self, X: Any, per_view: Literal[False] = False) -> Array: ...

    @overload
    def score_samples(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    def score_samples(self, X: Any, per_view: bool = False) -> Array | dict[str, Array]:
        """Return how usual each sample is among the training samples, from 0 to 1; a low score means a novel sample.

        The score is a quantile: the fraction of training samples that lie farther from their neighbours than this
        sample does, in each view or over all views of the sample. See docs/certainty.md.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the score in each view instead; NaN for samples that lack the view.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view name
        """
        views = self.check(X)
        if per_view:
            return self._by_view("usualness", views)
        return self.model_.joint_usualness(self.model_.usualness(views))

    def view_contributions(self, X: Any) -> dict[str, Array]:
        """Return how much each view contributes to the cluster of each sample, in contrast to the next nearest cluster.

        A view with a negative contribution contradicts the label. For methods with scores, the contributions of all
        views sum to the decision margin: half the difference between the squared distances from the direction of the
        sample's scores to the centre of the next nearest cluster and to that of its own. For `Coview`, a contribution
        is the fraction of the sample's neighbours in the view that are in its cluster, minus that in the cluster with
        the second largest membership. docs/stability.md has the definition.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        dict
            Arrays of shape (n_samples,) by view name, NaN for samples that lack the view.
        """
        views = self.check(X)
        return self.model_.contributions(views)

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
        views = self.check(X)
        found, _ = self.model_.reclustered(views, as_generator(self.method.random_state))
        wanted = int(self.method.n_clusters)
        self.publish(found.with_notes(*note_on_fewer(found.n_clusters, wanted)))
        return self

    @property
    def view_labels_(self) -> dict[str, Labels]:
        """Clusters of the training samples by each view alone, by view name; -1 if a sample lacks the view."""
        check_is_fitted(self)
        labels = self.model_.labels_by_view
        if labels is None:
            raise AttributeError(f"{type(self).__name__} has no labels by each view alone")
        return labels

    @property
    def _n_features_out(self) -> int:
        """The number of scores, for the names of columns."""
        return self.model_.n_components

    def plot(self, *, ax: Any = None) -> Any:
        """Return a picture of the clusters of the training samples: their map, or the cluster sizes without scores.

        The map is a t-SNE of the scores, as in the report. It takes about a second. `coview.plots` has further figures.

        Parameters
        ----------
        ax : matplotlib axes, optional
            By default a new figure of pyplot, which notebooks show.

        Returns
        -------
        matplotlib axes
        """
        check_is_fitted(self)
        return FIGURES["model"](self, ax=ax)

    def _by_view(self, question: str, views: Views) -> dict[str, Array]:
        """Return what the predictor answers for each view alone."""
        if not self.model_.can(question) or self.model_.seen_names != self.model_.names:
            raise InputError(f"{type(self).__name__} has no results by each view alone; leave per_view=True out")
        found: dict[str, Array] = self.model_.ask(question, views)
        return found

    def _require(self, ability: str, parameter: str, what: str, remedy: str) -> None:
        if ability not in self.abilities:
            kind = type(self.method).__name__
            raise InputError(f"{parameter}: {kind} has no {what}; {remedy}, or use TMvKSCR or Coview")

    def _output_container(self) -> Any:
        """Return "default", "pandas" or "polars", as `set_output` or the configuration of scikit-learn says."""
        return getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]

    def _labelled(self, scores: Array, index: Any) -> Any:
        """Return the scores with these row labels for pandas output; scikit-learn keeps those of one table only."""
        if index is None or self._output_container() != "pandas":
            return scores
        import pandas as pd

        return pd.DataFrame(scores, index=index)


def _if_able(ability: str) -> Any:
    return available_if(lambda estimator: ability in estimator.abilities)


# After scikit-learn has wrapped `transform` and `fit_transform` for `set_output`.
for _name in RECLUSTERS:
    setattr(Clusterer, _name, _if_able(_name)(vars(Clusterer)[_name]))
Clusterer.get_feature_names_out = _if_able("transform")(Clusterer.get_feature_names_out)


def _refuse_views_as_y(y: Any) -> None:
    """Refuse a second table in place of y, which scikit-learn's tools pass and no method uses."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise InputError(
            f"y is a table of {shape[0]} x {shape[1]} values, but y is ignored; give all views as the first argument, "
            "as in fit([text, image])"
        )
