"""What wrappers share: the estimators that they accept, and how the fitted estimator answers for its wrapper."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, TypeVar, overload

import numpy as np
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if

from coview.core.assign import Labels
from coview.errors import InputError, InputTypeError
from coview.kernels import RBF, Kernel, Precomputed, kernel_per_view
from coview.methods.base import MultiViewClusterer, warn_if_many_clusters
from coview.parameters import is_integer
from coview.progress import Progress
from coview.rows import SAFE_EXPONENT, largest_value, safe_unit
from coview.state import FITTED, Sizes, require
from coview.views import Array, Views

Method = TypeVar("Method", bound=Callable[..., Any])


def fit_with_stages(estimator: Any, views: Views, progress: Progress) -> Any:
    """Fit an estimator and return it; its stages are reported if it has a parameter `progress`."""

    def stage(name: str, done: int, total: int) -> None:
        progress(f"fitting: {name}", done, total)

    before = _progress_parameters(estimator)
    estimator.set_params(**dict.fromkeys(before, stage))
    try:
        estimator.fit(views)
    finally:
        for model in _all_models(estimator):  # they are kept without the function, which cannot be pickled
            model.set_params(**dict.fromkeys(_progress_parameters(model)))
        estimator.set_params(**before)
    return estimator


def _progress_parameters(estimator: Any) -> dict[str, Any]:
    found = estimator.get_params().items()
    return {key: value for key, value in found if key == "progress" or key.endswith("__progress")}


def _all_models(model: Any) -> Iterator[Any]:
    """Yield an estimator and all estimators inside it, also those of single views."""
    yield model
    if isinstance(model, MultiViewClusterer):
        fitted = vars(model)
        for each in [fitted.get("estimator_"), *fitted.get("estimators_", {}).values()]:
            if each is not None:
                yield from _all_models(each)


def inner_has(method: str, has: Callable[[Any, str], bool] = hasattr) -> Callable[[Method], Method]:
    """Return a decorator that offers a method only if the wrapped estimators have it."""

    def check(wrapper: Any) -> bool:
        inner = wrapper.estimator
        return all(has(e, method) for e in (inner.values() if isinstance(inner, Mapping) else [inner]))

    offer: Callable[[Method], Method] = available_if(check)
    return offer


def has_own(estimator: Any, method: str) -> bool:
    """Return whether an estimator of this library has a method, which may mean something else in other libraries."""
    return isinstance(estimator, MultiViewClusterer) and hasattr(estimator, method)


def require_clusterer(estimator: Any) -> None:
    """Raise an error if this is not an instance of a clusterer."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise InputError(f"estimator={name}: expected an instance such as {name}(3), got the class")
    if not (hasattr(estimator, "fit_predict") and hasattr(estimator, "get_params")):
        raise InputTypeError(f"estimator={estimator!r}: expected a clusterer such as KSC(3)")


def require_method(estimator: Any, purpose: str) -> None:
    """Raise an error, which starts with what methods are needed for, if this clusterer is of another library."""
    if not isinstance(estimator, MultiViewClusterer):
        kind = type(estimator).__name__
        raise InputTypeError(f"{purpose} methods of this library; wrap {kind}, as in Concat({kind}(…))")


def warn_for_other_libraries(estimators: Iterable[Any], views: Views) -> None:
    """Warn, as the methods of this library do, if other estimators have more clusters than half of the samples."""
    foreign = [each for each in estimators if not isinstance(each, MultiViewClusterer)]
    numbers = [getattr(each, "n_clusters", None) for each in foreign]
    warn_if_many_clusters(max((int(n) for n in numbers if n is not None and is_integer(n)), default=0), views.n_samples)


def require_safe_range(estimator: Any, views: Views, *, to_fit: bool) -> None:
    """Raise an InputError if an estimator of another library cannot compute squares of the largest values.

    Small values do no harm in new samples.
    """
    if isinstance(estimator, MultiViewClusterer):
        return
    sizes = {name: largest_value(x) for name, x in views.items()}
    largest = max(views, key=sizes.__getitem__)
    limit = 2.0 ** SAFE_EXPONENT[views.dtype]
    if safe_unit(sizes[largest], views.dtype) != 1 and (to_fit or sizes[largest] > 1):
        raise InputError(
            f"view {largest!r} has values of up to {sizes[largest]:.0e}, and {type(estimator).__name__} of another "
            f"library expects values between {1 / limit:.0e} and {limit:.0e} in {views.dtype}; scale the view"
            + (", or give it in float64" if views.dtype == np.float32 else "")
        )


def setting(estimator: Any, name: str, default: Any) -> Any:
    """Return a parameter of an estimator or, if it is a wrapper without that parameter, of the estimator inside."""
    while not hasattr(estimator, name) and isinstance(getattr(estimator, "estimator", None), MultiViewClusterer):
        estimator = estimator.estimator
    return getattr(estimator, name, default)


def _by_view(per_view: bool) -> dict[str, Any]:
    return {"per_view": True} if per_view else {}  # not all methods have this parameter


def prediction_settings(estimator: Any, per_view: bool, novel_below: float | None) -> dict[str, Any]:
    """Return the further arguments of the predict of a fitted estimator, which not all methods have."""
    if novel_below is None:
        return _by_view(per_view)
    if not has_own(estimator, "score_samples"):
        kind = type(estimator).__name__
        raise InputError(
            f"novel_below={novel_below}: {kind} has no novelty scores; leave it out, or use TMvKSCR or Coview"
        )
    return {**_by_view(per_view), "novel_below": novel_below}


class OneEstimator(MultiViewClusterer):
    """A wrapper around one estimator, which has `transform` if the estimator has."""

    estimator: Any
    estimator_: Annotated[Any, FITTED]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "transform"):
            tags.transformer_tags = get_tags(self.estimator).transformer_tags
        return tags

    @property
    def inner_model(self) -> Any:
        """The fitted estimator; None before fit."""
        return vars(self).get("estimator_")

    @inner_has("transform")
    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Fit, and return the score variables of all samples.

        Parameters
        ----------
        X : views, as in `as_views`
        y : ignored

        Returns
        -------
        array of shape (n_samples, n_components)
        """
        model: Any = self.fit(X)
        return model.transform(X)

    def _ask(self, method: str, views: Views, **settings: Any) -> Any:
        """Return what a method of the fitted estimator returns for these samples."""
        return getattr(self.estimator_, method)(self.inner_views(views), **settings)

    def _labels_and_ties(self, X: Any) -> Labels:
        if not isinstance(self.estimator_, MultiViewClusterer):
            return super()._labels_and_ties(X)
        return np.asarray(self._ask("_labels_and_ties", self._views_to_predict(X)))

    def _renumber(self, order: Labels) -> bool:
        if not (isinstance(self.estimator_, MultiViewClusterer) and self.estimator_._renumber(order)):
            return False
        self.labels_ = self.estimator_.labels_
        return True

    @inner_has("predict_proba")
    def predict_proba(self, X: Any) -> Array:
        """Return the membership of each sample in each cluster, as the fitted estimator computes it.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        array of shape (n_samples, n_clusters)
        """
        membership: Array = self._ask("predict_proba", self._views_to_predict(X))
        return membership


class Wrapper(OneEstimator):
    """A wrapper that predicts, transforms and has the fitted attributes as its fitted estimator does."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(getattr(self, "estimator", None), MultiViewClusterer):
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan, tags.input_tags.sparse = inner.allow_nan, inner.sparse
        return tags

    @property
    def _samples_may_lack_views(self) -> bool:
        return isinstance(self.estimator, MultiViewClusterer) and self.estimator._samples_may_lack_views

    def _fills_cells(self, view: str) -> bool:
        return isinstance(self.estimator, MultiViewClusterer) and self.estimator._fills_cells(view)

    def _check_n_clusters(self, views: Views) -> None:
        """The wrapped estimator checks it."""

    def _check_state(self, sizes: Sizes) -> None:
        super()._check_state(sizes)
        inner, widths = self.estimator_.view_n_features_, self._inner_n_features()
        require(inner == widths, f"estimator_ expects views with {inner} features, not {widths}")

    def _inner_n_features(self) -> dict[str, int]:
        """Return the number of features of each view that the wrapped estimator sees."""
        return self.view_n_features_

    def _require_method(self, purpose: str) -> None:
        require_clusterer(self.estimator)
        require_method(self.estimator, f"{type(self).__name__} {purpose}")
        if any(isinstance(kernel, Precomputed) for kernel in self._kernels().values()):
            raise InputError(
                f"{type(self).__name__} needs views of features; with kernel='precomputed' fit the method itself"
            )

    def _kernels(self) -> dict[str, Kernel]:
        """Return the kernels of the method inside one or more wrappers."""
        kernel = setting(self.estimator, "kernel", RBF())
        if isinstance(kernel, (Mapping, list, tuple)) and len(kernel) == 1:
            # The kernel of the one view that the method sees, which inside Concat is not one of these views.
            (kernel,) = kernel.values() if isinstance(kernel, Mapping) else kernel
        return kernel_per_view(kernel, self.view_names_)

    def __getattr__(self, name: str) -> Any:
        """Return what the fitted estimator has learnt, except labels_, which may belong to some of the samples."""
        if name.endswith("_") and not name.startswith("_") and name != "labels_" and "estimator_" in self.__dict__:
            return getattr(self.estimator_, name)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    @overload
    def predict(self, X: Any, per_view: Literal[False] = False, novel_below: float | None = None) -> Labels: ...

    @overload
    def predict(self, X: Any, per_view: Literal[True], novel_below: float | None = None) -> dict[str, Labels]: ...

    @overload
    def predict(self, X: Any, per_view: bool, novel_below: float | None = None) -> Labels | dict[str, Labels]: ...

    @inner_has("predict")
    def predict(self, X: Any, per_view: bool = False, novel_below: float | None = None) -> Labels | dict[str, Labels]:
        """Return the cluster of each sample, as the fitted estimator predicts it.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return labels by each view's own scores instead, if the estimator can.
        novel_below : float in [0, 1], optional
            Samples whose `score_samples` is below this have the label -1, if the estimator has these scores.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view
        """
        views = self._views_to_predict(X)
        return self._ask("predict", views, **prediction_settings(self.estimator_, per_view, novel_below))

    @overload
    def score_samples(self, X: Any, per_view: Literal[False] = False) -> Array: ...

    @overload
    def score_samples(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @inner_has("score_samples")
    def score_samples(self, X: Any, per_view: bool = False) -> Array | dict[str, Array]:
        """Return how usual each sample is among the training samples, as the fitted estimator computes it.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return the score in each view instead.

        Returns
        -------
        array of shape (n_samples,), or a dictionary of such arrays by view
        """
        scores: Array | dict[str, Array] = self._ask("score_samples", self._views_to_predict(X), **_by_view(per_view))
        return scores

    @overload
    def transform(self, X: Any, per_view: Literal[True]) -> dict[str, Array]: ...

    @overload
    def transform(self, X: Any, per_view: bool = False) -> Any: ...  # an array, or a data frame after `set_output`

    @inner_has("transform")
    def transform(self, X: Any, per_view: bool = False) -> Any:
        """Return the score variables of these samples, as the fitted estimator computes them.

        Parameters
        ----------
        X : views, as in `as_views`
        per_view : bool
            Return each view's own scores instead of their weighted sum.

        Returns
        -------
        array of shape (n_samples, n_components), or a dictionary of such arrays by view
        """
        return self._ask("transform", self._views_to_predict(X), **_by_view(per_view))

    @inner_has("view_contributions")
    def view_contributions(self, X: Any) -> dict[str, Array]:
        """Return how much each view contributes to the cluster of each sample, as the fitted estimator computes it.

        Parameters
        ----------
        X : views, as in `as_views`

        Returns
        -------
        dict
            Arrays of shape (n_samples,) by view name: negative for views that contradict the label, NaN for samples
            that lack the view.
        """
        contributions: dict[str, Array] = self._ask("view_contributions", self._views_to_predict(X))
        return contributions
