"""Wrapper: an estimator around another one, whose model it changes; and estimators of other libraries."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from coview.base.parameters import is_integer
from coview.base.progress import Progress, reporting
from coview.core.assign import Labels
from coview.data.rows import SAFE_EXPONENT, largest_value, safe_unit
from coview.data.view import Array
from coview.data.views import Views
from coview.errors import InputError, InputTypeError, Note
from coview.kernels import RBF, Kernel, Precomputed, kernel_per_view
from coview.model.clusterer import Clusterer
from coview.model.fitting import as_part, note_on_many_clusters
from coview.model.model import Model, Predictor

_ABILITIES = frozenset({"predict", "transform", "fit_transform", "predict_proba"})  # of other libraries


class Wrapper(Clusterer):
    """Base class of estimators around another one; it can do what the estimator inside can do."""

    estimator: Any
    kept_abilities: ClassVar[frozenset[str] | None] = None  # those that remain; None for all

    @property
    def abilities(self) -> frozenset[str]:  # type: ignore[override]
        """What the estimator inside can do."""
        inner = self.estimator.values() if isinstance(self.estimator, Mapping) else [self.estimator]
        found = frozenset.intersection(*map(_abilities_of, inner)) if inner else frozenset()
        return found if self.kept_abilities is None else found & self.kept_abilities

    @property
    def may_lack_views(self) -> bool:  # type: ignore[override]
        """Whether samples need not have all views."""
        return isinstance(self.estimator, Clusterer) and self.estimator.may_lack_views

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if isinstance(self.estimator, Clusterer):
            inner = get_tags(self.estimator).input_tags
            tags.input_tags.allow_nan = inner.allow_nan and self.may_lack_views
            tags.input_tags.sparse = inner.sparse
        return tags

    def fills_cells(self, view: str) -> bool:
        return isinstance(self.estimator, Clusterer) and self.estimator.fills_cells(view)

    @property
    def method(self) -> Any:
        """The method inside wrappers, as it was given."""
        return self.estimator.method if isinstance(self.estimator, Clusterer) else self.estimator

    def check_views(self, views: Views) -> tuple[Note, ...]:
        """Raise an InputError if this wrapper cannot be fitted; `learn` checks the views that the estimator sees."""
        require_clusterer(self.estimator)
        return ()

    def check_coverage(self, views: Views) -> None:
        if isinstance(self.estimator, Clusterer):
            self.estimator.check_coverage(views)

    def check_missing(self, views: Views) -> None:
        if isinstance(self.estimator, Clusterer) and not self.estimator.may_lack_views:
            self.estimator.check_missing(views)  # the command wraps methods, whose names are those that users know
        else:
            super().check_missing(views)

    def of_part(self, found: Model, rows: Array, seed: int) -> Self:
        return super().of_part(found, rows, seed).set_params(estimator=part_of(self.estimator, found, rows, seed))

    def __getattr__(self, name: str) -> Any:
        """Explain why what the method has learnt is no attribute of this estimator."""
        model = vars(self).get("model_")
        if model is None or name not in model.unpublished:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        raise AttributeError(
            f"{type(self).__name__} has no {name}, which describes the {len(model.trained_labels)} training samples of "
            "the method inside; "
            + (f"read model_.learnt[{name!r}]" if name in model.learnt else "call predict(…, per_view=True)")
        )

    def require_method(self, purpose: str, names: tuple[str, ...]) -> None:
        """Raise an error, which starts with what this wrapper does, unless it is around a method of this library."""
        require_own(self.estimator, f"{type(self).__name__} {purpose}")
        if any(isinstance(kernel, Precomputed) for kernel in self.kernels(names).values()):
            raise InputError(
                f"{type(self).__name__} needs views of features; with kernel='precomputed' fit the method itself"
            )

    def kernels(self, names: tuple[str, ...]) -> dict[str, Kernel]:
        """Return the kernels that the method inside was given for these views."""
        kernel = getattr(self.method, "kernel", RBF())
        if isinstance(kernel, (Mapping, list, tuple)) and len(kernel) == 1:
            # The kernel of the one view that the method sees, which inside Concat is not one of these views.
            (kernel,) = kernel.values() if isinstance(kernel, Mapping) else kernel
        return kernel_per_view(kernel, names)


def learn(estimator: Any, views: Views, report: Progress) -> Model:
    """Return the model of an estimator inside a wrapper, which may be of another library, on the views that it sees."""
    if isinstance(estimator, Clusterer):
        notes, own = estimator.check_views(views), getattr(estimator, "progress", None)
        with reporting(own) as own_report:
            found = estimator.fit_model(views, own_report if own else report)
        return replace(found, notes=(*notes, *found.notes))
    require_safe_range(estimator, views, to_fit=True)
    fitted = clone(estimator)
    labels = np.asarray(fitted.fit_predict(next(iter(views.values()))))
    number: Any = getattr(estimator, "n_clusters", None)
    notes = note_on_many_clusters(int(number) if is_integer(number) else 0, views.n_samples)
    return Model(labels, {}, Foreign(fitted, tuple(np.unique(labels).tolist())), notes=notes)


def part_of(estimator: Any, found: Model, rows: Array, seed: int) -> Any:
    """Return an estimator inside a wrapper with its settings for some of the samples; see `Clusterer.of_part`."""
    return estimator.of_part(found, rows, seed) if isinstance(estimator, Clusterer) else as_part(estimator, seed)


def require_clusterer(estimator: Any) -> None:
    """Raise an error if this is not an instance of a clusterer."""
    if isinstance(estimator, type):
        name = estimator.__name__
        raise InputError(f"estimator={name}: expected an instance such as {name}(3), got the class")
    if not (hasattr(estimator, "fit_predict") and hasattr(estimator, "get_params")):
        raise InputTypeError(f"estimator={estimator!r}: expected a clusterer such as KSC(3)")


def require_own(estimator: Any, purpose: str) -> None:
    """Raise an error, which starts with what methods are needed for, if this clusterer is of another library."""
    require_clusterer(estimator)
    if not isinstance(estimator, Clusterer):
        kind = type(estimator).__name__
        raise InputTypeError(f"{purpose} methods of this library; wrap {kind}, as in Concat({kind}(…))")


def _abilities_of(estimator: Any) -> frozenset[str]:
    if isinstance(estimator, Clusterer):
        return estimator.abilities
    # Their `score_samples` are log-likelihoods, not novelty.
    return frozenset(name for name in _ABILITIES if hasattr(estimator, name))


def require_safe_range(estimator: Any, views: Views, *, to_fit: bool) -> None:
    """Raise an InputError if an estimator of another library cannot compute squares of the largest values.

    Small values do no harm in new samples.
    """
    sizes = {name: largest_value(x) for name, x in views.items()}
    largest = max(views, key=sizes.__getitem__)
    limit = 2.0 ** SAFE_EXPONENT[views.dtype]
    if safe_unit(sizes[largest], views.dtype) != 1 and (to_fit or sizes[largest] > 1):
        raise InputError(
            f"view {largest!r} has values of up to {sizes[largest]:.0e}, and {type(estimator).__name__} of another "
            f"library expects values between {1 / limit:.0e} and {limit:.0e} in {views.dtype}; scale the view"
            + (", or give it in float64" if views.dtype == np.float32 else "")
        )


@dataclass(frozen=True)
class Foreign(Predictor):
    """A fitted estimator of another library, which sees one table and keeps its numbers of clusters."""

    estimator: Any
    found: tuple[int, ...]  # the labels of the training samples

    not_saved: ClassVar[str] = "only estimators of coview can be saved, because a file holds no code"

    @property
    def n_clusters(self) -> int:
        return len(self.found)

    @property
    def n_components(self) -> int:
        """The number of columns of `transform`."""
        return len(self.estimator.get_feature_names_out())

    def can(self, question: str) -> bool:
        methods = {"labels": "predict", "scores": "transform", "membership": "predict_proba"}
        return question in methods and hasattr(self.estimator, methods[question])

    def labels(self, views: Views) -> Labels:
        return np.asarray(self._ask("predict", views))

    def labels_and_ties(self, views: Views) -> Labels:
        labels = self.labels(views)
        return np.column_stack([labels, np.ones_like(labels)])

    def scores(self, views: Views) -> Array:
        """Return what `transform` returns."""
        return np.asarray(self._ask("transform", views))

    def membership(self, views: Views) -> Array:
        """Return what `predict_proba` returns."""
        return np.asarray(self._ask("predict_proba", views))

    def _ask(self, method: str, views: Views) -> Any:
        require_safe_range(self.estimator, views, to_fit=False)
        return getattr(self.estimator, method)(next(iter(views.values())))
