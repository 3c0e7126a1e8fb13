"""What all methods share: input validation and the scikit-learn contract."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, Protocol, Self, TypeAlias

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import ClassifierTags, estimator_html_repr
from sklearn.utils.validation import check_is_fitted, validate_data

from coview.core.alternate import Alternation
from coview.core.assign import Labels, number_by_size
from coview.core.fingerprint import fingerprint
from coview.errors import InputError
from coview.kernels import by_view_name
from coview.likely_mistakes import warn_of_likely_mistakes
from coview.methods.notebook import fitted_facts
from coview.parameters import check_integer, check_number, is_integer, is_number
from coview.parts import warn
from coview.preprocess.encode import Encoding, encoded
from coview.registry import FIGURES, check_name
from coview.state import OPTIONAL, ByView, IntegerArray, Range, Size, Sizes, SomeViews, StringArray, require
from coview.views import Array, Views, as_views, holds_several, with_new_row_numbers

TrainingLabels: TypeAlias = Annotated[Labels, IntegerArray("train", least=0, below="train")]
Seed: TypeAlias = int | np.integer[Any] | np.random.Generator | np.random.RandomState | None
WeightsParameter: TypeAlias = float | Sequence[float] | Array | Mapping[str, float] | None
ViewWeights: TypeAlias = ByView[Annotated[float, Range(least=0)]]


class FittedModel(Protocol):
    """What every saved model has; `isinstance` with a class of this library narrows it for a type checker."""

    @property
    def labels_(self) -> Labels: ...

    @property
    def view_names_(self) -> tuple[str, ...]: ...

    @property
    def view_n_features_(self) -> dict[str, int]: ...

    @property
    def n_features_in_(self) -> int: ...

    def predict(self, X: Any) -> Labels: ...


class MultiViewClusterer(ClusterMixin, BaseEstimator, ABC):
    """Base class of all methods: input validation for fit and predict."""

    n_clusters: int
    views: Any = None  # methods of one view do not have this parameter
    max_iter: int
    tol: float
    random_state: Any
    labels_: TrainingLabels
    view_names_: Annotated[tuple[str, ...], Size("views")]
    view_n_features_: ByView[Annotated[int, Range(least=1)]]
    n_features_in_: Annotated[int, Range(least=1), Size("stacked columns")]
    feature_names_in_: Annotated[Array, StringArray("stacked columns"), OPTIONAL]
    _view_columns: ByView[Annotated[tuple[str, ...], Size("features")] | None]
    _encodings: SomeViews[Encoding]  # of views with categories
    _sklearn_output_config: Annotated[dict[str, Literal["default", "pandas", "polars"]], OPTIONAL]
    _fingerprint: str  # of the training samples
    _has_row_numbers: Annotated[bool, OPTIONAL] = False  # some views had in training, beside others with labels

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        # allow_nan stays False also if samples may lack views: scikit-learn's checks then set single cells to NaN,
        # which are refused.
        if hasattr(self, "predict_proba"):
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

    @property
    def _samples_may_lack_views(self) -> bool:
        """Whether samples need not have all views."""
        return False

    @property
    def _k(self) -> int:
        """The number of clusters as an integer of Python: small integers of NumPy overflow."""
        if not is_integer(self.n_clusters):
            raise AttributeError("n_clusters is not one number")  # `dir` reads all properties
        return int(self.n_clusters)

    def _fills_cells(self, view: str) -> bool:
        """Return whether empty cells of a view are filled; they are refused otherwise."""
        return False

    @property
    def inner_model(self) -> Any:
        """The fitted model inside a wrapper; None for a method."""
        return None

    def inner_views(self, views: Views) -> Views:
        """Return the views that the inner model sees.

        Parameters
        ----------
        views : Views
            Samples with the views of this model.

        Returns
        -------
        Views
            The same samples as input of `inner_model`; for a method, the views themselves.
        """
        return views

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
        before = self.__dict__.copy()
        try:
            self._fit(X)
        except BaseException:
            self.__dict__ = before
            raise
        return self

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

    @abstractmethod
    def _fit(self, X: Any) -> None:
        """Validate the views and learn from them."""

    def _views_to_fit(self, X: Any) -> Views:
        """Return the validated views, and store their names and shapes."""
        views = given = as_views(X, self.views, self._fills_cells)
        self._check_missing(views)
        # A view that no sample has is refused later.
        self._encodings = {name: Encoding.learn(views, name) for name in views.categories if views.n_present(name)}
        views = encoded(views, self._encodings)
        if given is not X:  # otherwise a wrapper or reader has validated them
            warn_of_likely_mistakes(given)
        self._check_n_clusters(views)
        self._check_stacked_columns(X, given, reset=True)
        self.view_names_ = views.names
        self.view_n_features_ = views.n_features
        self._view_columns = views.columns
        self._has_row_numbers = given.has_row_numbers
        self._fingerprint = fingerprint(views)
        return views

    def _check_missing(self, views: Views) -> None:
        """Raise an InputError if samples lack views and this method needs all of them."""
        if views.complete or self._samples_may_lack_views:
            return
        lacking = ", ".join(f"{name}: {(~mask).sum()}" for name, mask in views.present.items())
        method: Any = self
        while not getattr(getattr(method, "estimator", None), "_samples_may_lack_views", True):
            method = method.estimator  # the command wraps methods, whose names are those that users know
        raise InputError(
            f"{type(method).__name__} needs all views of each sample, and {(~views.has_all()).sum()} of "
            f"{views.n_samples} samples lack some (rows that are NaN throughout, {lacking}); drop these samples, or "
            "use TMvKSCR or Coview"
        )

    def _check_n_clusters(self, views: Views) -> None:
        # scikit-learn's contract fits one table with n_clusters=1, so one view has the trivial solution.
        if len(views) == 1:
            check_integer("n_clusters", self.n_clusters, 1)
        else:
            check_integer("n_clusters", self.n_clusters, 2, or_else=f" for {len(views)} views")
        require_enough_samples(self._k, views.n_samples)
        warn_if_many_clusters(self._k, views.n_samples)

    def _views_to_predict(self, X: Any) -> Views:
        """Return new views in the order of fit, after they are compared with the views of fit."""
        check_is_fitted(self)
        named = isinstance(X, Mapping) and holds_several(X)
        fills = self._fills_cells if named else lambda view: any(map(self._fills_cells, self.view_names_))
        X = with_new_row_numbers(X) if self._has_row_numbers else X
        views = as_views(X, self.views if not holds_several(X) else None, fills)
        if not named and len(views) == len(self.view_names_):
            views = views.rename(self.view_names_)  # a list or one table has no names: the order counts
            views = as_views(views, None, self._fills_cells)
        self._check_stacked_columns(X, views, reset=False)
        self._check_missing(views)
        views = self._encoded(views)
        given, known = set(views.names), set(self.view_names_)
        if named and self._samples_may_lack_views and given < known:
            absent = {name: self.view_n_features_[name] for name in self.view_names_ if name not in given}
            views = views.with_absent(absent, self._view_columns)
            given = known
        if given != known:
            missing = f"; missing: {', '.join(sorted(known - given))}" if known - given else ""
            unknown = f"; unknown: {', '.join(sorted(given - known))}" if given - known else ""
            raise InputError(
                f"{type(self).__name__} was fitted on the views {', '.join(self.view_names_)}{missing}{unknown}; give "
                "the same views under the same names"
            )
        for name, x in views.items():
            if x.shape[1] != self.view_n_features_[name]:
                raise InputError(
                    f"view {name!r} has {x.shape[1]} columns, but it had {self.view_n_features_[name]} when "
                    f"{type(self).__name__} was fitted; use the same columns in the same order"
                )
            before, now = self._view_columns[name], views.columns[name]
            if before is not None and now is not None and before != now and holds_several(X):
                first = next((a, b) for a, b in zip(before, now, strict=True) if a != b)
                raise InputError(
                    f"view {name!r} has the column {first[1]!r} where {first[0]!r} was when {type(self).__name__} was "
                    "fitted; use the same columns in the same order"
                )
        return views.select(self.view_names_)

    def _encoded(self, views: Views) -> Views:
        """Return new views with their categories encoded as those of the training samples."""
        for name, found in views.categories.items():
            if name in self.view_names_ and name not in self._encodings:
                raise InputError(
                    f"view {name!r} has categories in the column {next(iter(found))!r}, but {type(self).__name__} was "
                    "fitted on numbers; give the same columns"
                )
        return encoded(views, self._encodings)

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

    def _check_state(self, sizes: Sizes) -> None:
        """Check relations between learnt attributes, before saving and after loading."""
        require(self.view_names_ == tuple(self.view_n_features_), "expected one number of features for each view")
        for name, encoding in self._encodings.items():
            require(self._view_columns[name] == encoding.names, f"expected the encoded columns of view {name!r}")

    def _generator(self) -> np.random.Generator:
        """Return the only source of randomness of a fit."""
        return as_generator(self.random_state)

    def _check_iteration_limits(self) -> None:
        check_integer("max_iter", self.max_iter, 1)
        if not (is_number(self.tol) and self.tol == np.inf):  # which stops as early as possible
            check_number("tol", self.tol, 0)

    def _store_objective(self, loop: Alternation[Any]) -> None:
        """Store the objective of every iteration, and warn if the iterations have not converged."""
        self.objective_ = loop.objective
        self.n_iter_ = len(loop.objective)
        if not loop.settled:
            warn(
                f"{type(self).__name__} has not converged after max_iter={self.max_iter} iterations; "
                f"increase max_iter, or tol above {self.tol:g}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _output_container(self) -> Any:
        """Return "default", "pandas" or "polars", as `set_output` or the configuration of scikit-learn says."""
        return getattr(self, "_sklearn_output_config", {}).get("transform") or get_config()["transform_output"]

    def _labelled(self, scores: Array, index: Any) -> Any:
        """Return the scores with these row labels for pandas output; scikit-learn keeps those of one table only."""
        if index is None or self._output_container() != "pandas":
            return scores
        import pandas as pd

        return pd.DataFrame(scores, index=index)

    def _labels_and_ties(self, X: Any) -> Labels:
        """Return the cluster of each sample, and 1 if it may depend on the numbers of the clusters; (n_samples, 2)."""
        model: Any = self
        labels = model.predict(X)
        return np.column_stack([labels, np.ones_like(labels)])

    def _renumber(self, order: Labels) -> bool:
        """Give the clusters `order` the numbers 0, 1, …; return whether it is possible."""
        return False

    def _store_labels(self, labels: Array) -> Labels:
        """Store labels, numbered by decreasing size; return the old label of each new number."""
        self.labels_, order = number_by_size(labels)
        self._warn_if_fewer(len(order))
        return order

    def _warn_if_fewer(self, found: int, wanted: int | None = None) -> None:
        wanted = self._k if wanted is None else wanted
        if found < wanted:
            warn(
                f"found {found} distinct clusters instead of n_clusters={wanted}: the samples may not differ enough",
                ConvergenceWarning,
                stacklevel=4,
            )


def as_generator(random_state: Seed) -> np.random.Generator:
    """Return a generator of random numbers; an InputError says what `random_state` may be."""
    seed = random_state
    if isinstance(seed, np.random.RandomState):
        seed = seed.randint(2**31)
    try:
        if isinstance(seed, (bool, np.bool_, np.random.SeedSequence)):  # a SeedSequence could not be saved
            raise TypeError
        return np.random.default_rng(seed)
    except (TypeError, ValueError):
        raise InputError(
            f"random_state={seed!r}: expected an integer of at least 0, a NumPy Generator or RandomState, or None"
        ) from None


def is_training_set(model: Any, views: Views) -> bool:
    """Whether these are the training samples, by their fingerprint, and have labels."""
    return hasattr(model, "labels_") and model._fingerprint == fingerprint(views)


def labels_of(model: Any, views: Views) -> tuple[Labels, bool]:
    """Return the clusters of validated samples, and whether they are the training samples; others are predicted."""
    if is_training_set(model, views):
        return np.asarray(model.labels_), True
    if not hasattr(model, "predict"):
        raise InputError(
            f"{type(model).__name__} cannot label new samples, and these {views.n_samples} are not the "
            f"{len(model.labels_)} training samples; give the views of the fit"
        )
    return np.asarray(model.predict(views)), False


def _refuse_views_as_y(y: Any) -> None:
    """Refuse a second table in place of y, which scikit-learn's tools pass and no method uses."""
    shape: tuple[int, ...] = getattr(y, "shape", ())
    if len(shape) == 2 and shape[1] > 1:
        raise InputError(
            f"y is a table of {shape[0]} x {shape[1]} values, but y is ignored; give all views as the first argument, "
            "as in fit([text, image])"
        )


def require_enough_samples(n_clusters: int, n_samples: int) -> None:
    """Raise an InputError if there are more clusters than samples."""
    if n_samples < max(2, n_clusters):
        raise InputError(
            f"n_samples={n_samples} is too few for n_clusters={n_clusters}; give more samples or ask for fewer clusters"
        )


def many_clusters(n_clusters: int, n_samples: int) -> str | None:
    """Return a sentence if there are more clusters than half of the samples, so that some have only one sample."""
    if 2 * n_clusters <= n_samples:
        return None
    return (
        f"{n_clusters} clusters are requested for {n_samples} training samples, so some clusters can have only one "
        "sample; ask for fewer clusters or give more samples"
    )


def warn_if_many_clusters(n_clusters: int, n_samples: int) -> None:
    """Warn if there are more clusters than half of the samples."""
    message = many_clusters(n_clusters, n_samples)
    if message is not None:
        warn(message, ConvergenceWarning, stacklevel=4)


def weights_per_view(
    parameter: str,
    weights: Any,
    names: tuple[str, ...],
    default: float,
    *,
    unnamed: float | None = None,
    may_vanish: bool = False,
) -> dict[str, float]:
    """Return the weight of each view, given as one number, a list in the order of the views, or a mapping by name.

    Views that a mapping does not name have the weight `unnamed`; if it is None, a mapping must name all views.
    """
    if weights is None:
        return dict.fromkeys(names, default)
    if is_number(weights):
        weights = [weights] * len(names)
    elif isinstance(weights, Mapping):
        given = {str(name): weight for name, weight in weights.items()}
        if unnamed is not None:
            for name in given:
                check_name(f"{parameter}: view", name, names)
            given = dict.fromkeys(names, unnamed) | given
        weights = list(by_view_name(parameter, given, names).values())
    elif isinstance(weights, (str, bool)) or not np.iterable(weights):
        raise InputError(f"{parameter}={weights!r}: expected a number, or one number for each view")
    if len(weights) != len(names):
        raise InputError(
            f"{parameter} has {len(weights)} numbers for {len(names)} views ({', '.join(names)}); give one for each"
        )
    checked = {
        name: check_number(f"{parameter}[{name!r}]", weight, 0) for name, weight in zip(names, weights, strict=True)
    }
    if not (may_vanish or any(checked.values())):
        raise InputError(f"{parameter}={list(checked.values())}: expected weights that are not all zero")
    return checked
