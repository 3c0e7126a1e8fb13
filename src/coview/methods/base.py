"""What every method shares: the gate for its views and the scikit-learn contract."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from numbers import Integral, Real
from typing import Annotated, Any, Literal, Self, TypeAlias

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from coview.core.alternate import Alternation
from coview.core.assign import Labels, number_by_size
from coview.errors import InputError
from coview.kernels import by_view_name
from coview.state import OPTIONAL, ByView, IntegerArray, Range, Size, Sizes, StringArray, require
from coview.views import Array, Views, as_views, holds_several

TrainingLabels: TypeAlias = Annotated[Labels, IntegerArray("train", least=0, below="train")]
ViewWeights: TypeAlias = ByView[Annotated[float, Range(least=0)]]


class MultiViewClusterer(ClusterMixin, BaseEstimator, ABC):
    """The gate for fit and predict, for any method."""

    n_clusters: int
    views: Any = None  # methods that know one view have no such parameter
    max_iter: int
    tol: float
    random_state: Any
    labels_: TrainingLabels
    view_names_: Annotated[tuple[str, ...], Size("views")]
    view_n_features_: ByView[Annotated[int, Range(least=1)]]
    n_features_in_: Annotated[int, Range(least=1), Size("stacked columns")]
    feature_names_in_: Annotated[Array, StringArray("stacked columns"), OPTIONAL]
    _view_columns: ByView[Annotated[tuple[str, ...], Size("features")] | None]
    _sklearn_output_config: Annotated[dict[str, Literal["default", "pandas", "polars"]], OPTIONAL]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def fit(self, X: Any, y: Any = None) -> Self:
        """Find the shared latent space and the clusters; a fit that fails leaves the estimator as it was.

        Parameters
        ----------
        X : views, as in `as_views`
            The training samples.
        y : ignored
        """
        before = self.__dict__.copy()
        try:
            self._fit(X)
        except BaseException:
            self.__dict__ = before
            raise
        return self

    @abstractmethod
    def _fit(self, X: Any) -> None:
        """Check the views, and learn from them."""

    def _views_to_fit(self, X: Any) -> Views:
        """Check the views and the number of clusters, and remember the shape of the views."""
        views = as_views(X, self.views)
        self._check_n_clusters(views)
        self._remember(X, views, reset=True)
        self.view_names_ = views.names
        self.view_n_features_ = views.n_features
        self._view_columns = views.columns
        return views

    def _check_n_clusters(self, views: Views) -> None:
        # scikit-learn's contract fits a plain X with n_clusters=1, so for one view the trivial answer is given.
        least = 1 if len(views) == 1 else 2
        if not isinstance(self.n_clusters, Integral) or self.n_clusters < least:
            raise InputError(f"n_clusters={self.n_clusters!r} must be a whole number of at least 2")
        if views.n_samples < max(2, self.n_clusters):
            raise InputError(
                f"n_samples={views.n_samples} is too few for n_clusters={self.n_clusters}; "
                "give more samples or ask for fewer clusters"
            )

    def _views_to_predict(self, X: Any) -> Views:
        """Check new views against those of fit, and bring them into the same order."""
        check_is_fitted(self)
        views = as_views(X, self.views if not holds_several(X) else None)
        named = isinstance(X, Mapping) and holds_several(X)
        if not named and len(views) == len(self.view_names_):
            views = views.rename(self.view_names_)  # a list or one table has no names: the order counts
        self._remember(X, views, reset=False)
        given, known = set(views.names), set(self.view_names_)
        if given != known:
            missing = f"; missing: {', '.join(sorted(known - given))}" if known - given else ""
            unknown = f"; unknown: {', '.join(sorted(given - known))}" if given - known else ""
            raise InputError(
                f"{type(self).__name__} was fitted on the views {', '.join(self.view_names_)}{missing}{unknown}"
            )
        for name, x in views.items():
            if x.shape[1] != self.view_n_features_[name]:
                raise InputError(
                    f"view {name!r} has {x.shape[1]} columns, but it had {self.view_n_features_[name]} when "
                    f"{type(self).__name__} was fitted"
                )
            before, now = self._view_columns[name], views.columns[name]
            if before is not None and now is not None and before != now and holds_several(X):
                first = next((a, b) for a, b in zip(before, now, strict=True) if a != b)
                raise InputError(
                    f"view {name!r} has the column {first[1]!r} where {first[0]!r} was when {type(self).__name__} was "
                    "fitted; use the same columns in the same order"
                )
        return views.select(self.view_names_)

    def _remember(self, X: Any, views: Views, *, reset: bool) -> None:
        """Let scikit-learn record, or compare, the columns of one stacked table."""
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

    def _generator(self) -> np.random.Generator:
        """The one source of randomness of a fit."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        try:
            return np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InputError(f"random_state={seed!r} must be a whole number, a NumPy generator or None") from None

    def _check_loop(self) -> None:
        """Check the limits of an iterative method."""
        if not (isinstance(self.max_iter, Integral) and self.max_iter >= 1):
            raise InputError(f"max_iter={self.max_iter!r} must be a whole number of at least 1")
        if not (isinstance(self.tol, Real) and self.tol >= 0):
            raise InputError(f"tol={self.tol!r} must be a number of at least 0")

    def _keep_loop(self, loop: Alternation[Any]) -> None:
        """Keep the trace of an alternating loop, and warn if it has not settled."""
        self.objective_ = loop.objective
        self.n_iter_ = len(loop.objective)
        if not loop.settled:
            warnings.warn(
                f"{type(self).__name__} has not settled after max_iter={self.max_iter} rounds; "
                f"allow more, or a tol larger than {self.tol:g}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _keep_labels(self, labels: Array) -> Labels:
        """Keep labels, numbered by decreasing size; return the old label of each new number."""
        self.labels_, order = number_by_size(labels)
        self._warn_if_fewer(len(order))
        return order

    def _warn_if_fewer(self, found: int) -> None:
        if found < self.n_clusters:
            warnings.warn(
                f"found {found} distinct clusters instead of n_clusters={self.n_clusters}: "
                "the samples may not differ enough",
                ConvergenceWarning,
                stacklevel=4,
            )


def weights_per_view(
    parameter: str, weights: Any, names: tuple[str, ...], default: float, *, may_vanish: bool = False
) -> dict[str, float]:
    """Check weights given as one number, a list in the order of the views, or a mapping by view name."""
    if weights is None:
        return dict.fromkeys(names, default)
    if isinstance(weights, Real):
        weights = [weights] * len(names)
    if isinstance(weights, Mapping):
        weights = list(by_view_name(parameter, weights, names).values())
    try:
        given = np.asarray(weights, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{parameter}={weights!r} must be one number for each view") from None
    if given.shape != (len(names),):
        raise InputError(f"{parameter} has {given.size} numbers for {len(names)} views ({', '.join(names)})")
    if not (np.isfinite(given).all() and (given >= 0).all()):
        raise InputError(f"{parameter}={given.tolist()} must be finite and not negative")
    if not (may_vanish or given.any()):
        raise InputError(f"{parameter}={given.tolist()} must not be all zero")
    return dict(zip(names, given.tolist(), strict=True))
